// Webhooks runs what Kubernetes' end-to-end tests have agnhost run in a pod: `webhook` and `crd-conversion-webhook`,
// with the flags that they give it.
package main

import (
	"flag"
	"fmt"
	"net/http"
	"os"

	"github.com/spf13/cobra"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/test/images/agnhost/crd-conversion-webhook/converter"
	"k8s.io/kubernetes/test/images/agnhost/webhook"
)

// conversion serves what agnhost's own command serves, which wants to run in a cluster.
func conversion() *cobra.Command {
	command := &cobra.Command{Use: "crd-conversion-webhook", Args: cobra.NoArgs}
	certificate := command.Flags().String("tls-cert-file", "", "the certificate")
	key := command.Flags().String("tls-private-key-file", "", "its key")
	port := command.Flags().Int("port", 443, "where it listens")
	command.RunE = func(*cobra.Command, []string) error {
		http.HandleFunc("/crdconvert", converter.ServeExampleConvert)
		return http.ListenAndServeTLS(fmt.Sprintf(":%d", *port), *certificate, *key, nil)
	}
	return command
}

func main() {
	root := &cobra.Command{Use: "webhooks"}
	klog.InitFlags(nil)
	root.PersistentFlags().AddGoFlagSet(flag.CommandLine)
	root.AddCommand(webhook.CmdWebhook, conversion())
	if root.Execute() != nil {
		os.Exit(1)
	}
}
