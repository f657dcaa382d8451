package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// world is the server as all checks see it, through clients of several sorts.
type world struct {
	// config is for JSON over HTTP/2.
	config *rest.Config
	// typed speaks protobuf, plain JSON, both over HTTP/2.
	typed, plain *kubernetes.Clientset
	dynamic      dynamic.Interface
	// metadata speaks HTTP/1.1.
	metadata metadata.Interface
	// namespaces are written to at random; checks is for the objects of single checks.
	namespaces []string
	checks     string
	outages    bool
	report     *report
}

func connect(ctx context.Context, kubeconfig, prefix string, outages bool, out *report) (*world, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	config.Timeout = 0
	binary := rest.CopyConfig(config)
	binary.ContentType = "application/vnd.kubernetes.protobuf"
	binary.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	old := rest.CopyConfig(config)
	old.NextProtos = []string{"http/1.1"}
	w := &world{
		config: config, namespaces: []string{prefix + "-a", prefix + "-b"}, checks: prefix + "-checks",
		outages: outages, report: out,
	}
	var failures [4]error
	w.typed, failures[0] = kubernetes.NewForConfig(binary)
	w.plain, failures[1] = kubernetes.NewForConfig(config)
	w.dynamic, failures[2] = dynamic.NewForConfig(config)
	w.metadata, failures[3] = metadata.NewForConfig(old)
	if err := errors.Join(failures[:]...); err != nil {
		return nil, err
	}
	for _, name := range append([]string{w.checks}, w.namespaces...) {
		if err := w.makeNamespace(ctx, name); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// makeNamespace makes one with the service account that pods need, which is else the work of a controller.
func (w *world) makeNamespace(ctx context.Context, name string) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	_, err := w.typed.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{})
	if err != nil && !(w.outages && apierrors.IsAlreadyExists(err)) {
		return err
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	_, err = w.typed.CoreV1().ServiceAccounts(name).Create(ctx, account, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// lost tells whether a request may have failed because the server was gone, or was about to be.
func (w *world) lost(err error) bool {
	var status apierrors.APIStatus
	return w.outages && err != nil && (!errors.As(err, &status) ||
		apierrors.IsServiceUnavailable(err) || apierrors.IsTooManyRequests(err))
}

// persist writes, and again for as long as the server is gone. A write that was done though no answer came is seen by
// the next try, as an object that is there or gone already.
func (w *world) persist(ctx context.Context, write func() error) error {
	again := false
	return eventually(ctx, 100*time.Millisecond, func() (bool, string, error) {
		err := write()
		if w.lost(err) {
			again = true
			return false, err.Error(), nil
		}
		if again && (apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err)) {
			return true, "", nil
		}
		return err == nil, "", err
	})
}

// eventually asks until it holds, for as long as patience lasts; then what is missing is the error.
func eventually(ctx context.Context, every time.Duration, holds func() (bool, string, error)) error {
	missing := ""
	err := wait.PollUntilContextTimeout(ctx, every, patience, true, func(context.Context) (bool, error) {
		done, what, err := holds()
		missing = what
		return done, err
	})
	if wait.Interrupted(err) {
		return fmt.Errorf("not within %s: %s", patience, missing)
	}
	return err
}
