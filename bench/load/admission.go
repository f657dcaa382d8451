package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"strings"
	"time"
)

const (
	hooks    = "/apis/admissionregistration.k8s.io/v1/"
	othersIn = 100 // configurations that are about something else
	// settled is how long servers take to follow what is configured.
	settled = 2 * time.Second
)

// admission creates ConfigMaps while webhooks and policies are configured: none, two webhooks that are asked, a hundred
// that are not, and policies of three expressions and of ten.
func admission(b *bench) error {
	hook, err := startHook()
	if err != nil {
		return err
	}
	defer hook.close()
	rows := []struct {
		name    string
		objects func() map[string][]byte
	}{
		{"none", func() map[string][]byte { return nil }},
		{"webhooks", func() map[string][]byte {
			return map[string][]byte{
				hooks + "mutatingwebhookconfigurations/load-asked":   hook.configuration("Mutating", "load-asked", "/patch", b.namespace, "configmaps"),
				hooks + "validatingwebhookconfigurations/load-asked": hook.configuration("Validating", "load-asked", "/allow", b.namespace, "configmaps"),
			}
		}},
		{"others", func() map[string][]byte {
			found := map[string][]byte{}
			for n := range othersIn {
				name := fmt.Sprintf("load-other-%d", n)
				found[hooks+"validatingwebhookconfigurations/"+name] = hook.configuration("Validating", name, "/allow", b.namespace, "secrets")
			}
			return found
		}},
		{"policy-3", func() map[string][]byte { return policy(b.namespace, 3) }},
		{"policy-10", func() map[string][]byte { return policy(b.namespace, 10) }},
	}
	for _, row := range rows {
		for _, workers := range b.opt.concurrency {
			name := fmt.Sprintf("admission/%s/c%d", row.name, workers)
			if !b.wanted(name) {
				continue
			}
			if err := b.admitted(name, workers, row.objects()); err != nil {
				return err
			}
		}
	}
	return nil
}

// admitted measures one row with these objects, by their paths.
func (b *bench) admitted(name string, workers int, objects map[string][]byte) error {
	for path, body := range objects {
		if err := b.post(path[:strings.LastIndex(path, "/")], body); err != nil {
			return err
		}
	}
	defer func() {
		for path := range objects {
			b.client.do(b.ctx, 0, request{method: "DELETE", path: path}, nil)
		}
		time.Sleep(settled)
	}()
	if len(objects) > 0 {
		time.Sleep(settled)
	}
	prefix := strings.ReplaceAll(strings.TrimPrefix(name, "admission/"), "/", "-")
	b.warm(workers, b.creates(configMaps, "warm-"+prefix))
	b.emit(b.measure(name, workers, b.span(), b.opt.count, b.creates(configMaps, "c-"+prefix)))
	return nil
}

// policy is a ValidatingAdmissionPolicy of some expressions with its binding, by their paths.
func policy(namespace string, expressions int) map[string][]byte {
	name := fmt.Sprintf("load-%d", expressions)
	samples := []string{
		"object.metadata.name.size() < 200",
		"has(object.data) && object.data.all(k, k.size() < 100)",
		"!has(object.metadata.labels) || !('forbidden' in object.metadata.labels)",
	}
	validations := []any{}
	for n := range expressions {
		validations = append(validations, map[string]any{"expression": samples[n%len(samples)]})
	}
	rule := map[string]any{"apiGroups": []string{""}, "apiVersions": []string{"v1"}, "operations": []string{"CREATE", "UPDATE"}, "resources": []string{"configmaps"}}
	body := object("ValidatingAdmissionPolicy", name, map[string]any{"spec": map[string]any{
		"matchConstraints": map[string]any{"resourceRules": []any{rule}, "namespaceSelector": only(namespace)},
		"validations":      validations,
	}})
	binding := object("ValidatingAdmissionPolicyBinding", name, map[string]any{"spec": map[string]any{
		"policyName": name, "validationActions": []string{"Deny"},
	}})
	return map[string][]byte{
		hooks + "validatingadmissionpolicies/" + name:       body,
		hooks + "validatingadmissionpolicybindings/" + name: binding,
	}
}

func only(namespace string) map[string]any {
	return map[string]any{"matchLabels": map[string]string{"kubernetes.io/metadata.name": namespace}}
}

func object(kind, name string, members map[string]any) []byte {
	members["apiVersion"] = "admissionregistration.k8s.io/v1"
	members["kind"] = kind
	members["metadata"] = map[string]string{"name": name}
	body, err := json.Marshal(members)
	if err != nil {
		panic(err)
	}
	return body
}

// hookServer is a webhook that allows everything, and adds a label where it is asked to change.
type hookServer struct {
	server *http.Server
	url    string
	ca     []byte
}

func startHook() (*hookServer, error) {
	certificate, ca, err := selfSigned()
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	hook := &hookServer{url: "https://" + listener.Addr().String(), ca: ca}
	hook.server = &http.Server{
		Handler:   http.HandlerFunc(review),
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{certificate}},
		ErrorLog:  log.New(io.Discard, "", 0),
	}
	go hook.server.ServeTLS(listener, "", "")
	return hook, nil
}

func (h *hookServer) close() { h.server.Close() }

func (h *hookServer) configuration(kind, name, path, namespace, resource string) []byte {
	rule := map[string]any{"apiGroups": []string{""}, "apiVersions": []string{"v1"}, "operations": []string{"CREATE", "UPDATE"}, "resources": []string{resource}}
	return object(kind+"WebhookConfiguration", name, map[string]any{"webhooks": []any{map[string]any{
		"name": "hook.load.example.com", "sideEffects": "None", "admissionReviewVersions": []string{"v1"},
		"clientConfig":      map[string]any{"url": h.url + path, "caBundle": h.ca},
		"rules":             []any{rule},
		"namespaceSelector": only(namespace),
	}}})
}

func review(w http.ResponseWriter, r *http.Request) {
	var asked struct {
		Request struct {
			UID string `json:"uid"`
		} `json:"request"`
	}
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	response := map[string]any{"uid": asked.Request.UID, "allowed": true}
	if r.URL.Path == "/patch" {
		patch := `[{"op":"add","path":"/metadata/annotations","value":{"load.example.com/seen":"yes"}}]`
		response["patch"], response["patchType"] = base64.StdEncoding.EncodeToString([]byte(patch)), "JSONPatch"
	}
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(map[string]any{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response})
}

// selfSigned is a certificate for this machine, which vouches for itself.
func selfSigned() (tls.Certificate, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "load"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), nil
}
