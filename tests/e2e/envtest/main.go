// Command envtest starts a control plane with controller-runtime's envtest, uses it as tests of operators do, stops it,
// and says in JSON how long each step took, in milliseconds. It exits with 1, and the reason, if a step fails.
//
// The programs are those of $KUBEBUILDER_ASSETS. A watch and informers are open when the control plane is told to stop,
// unless -watch=false is given: kube-apiserver waits for their ends, longer than envtest waits for its own.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
)

type report struct {
	Steps map[string]float64 `json:"milliseconds"`
	Users []string           `json:"users"`
	Left  []string           `json:"left"`
}

var watch = flag.Bool("watch", true, "have watches open at the end")

func main() {
	flag.Parse()
	log.SetLogger(zap.New(zap.WriteTo(os.Stderr)))
	found := report{Steps: map[string]float64{}, Users: []string{}, Left: []string{}}
	if err := found.run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if err := json.NewEncoder(os.Stdout).Encode(found); err != nil {
		os.Exit(1)
	}
}

// step does something and notes how long it took.
func (r *report) step(name string, do func() error) error {
	began := time.Now()
	if err := do(); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	r.Steps[name] = float64(time.Since(began).Microseconds()) / 1000
	return nil
}

func (r *report) run() (err error) {
	// All that is made in a temporary folder is made in one of our own, to see what is left there.
	folder, err := os.MkdirTemp("", "envtest-check-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	if err := os.Setenv("TMPDIR", folder); err != nil {
		return err
	}
	env := &envtest.Environment{AttachControlPlaneOutput: true}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := r.step("start", func() error { _, err := env.Start(); return err }); err != nil {
		return errors.Join(err, env.Stop())
	}
	if err := r.use(ctx, env); err != nil {
		return errors.Join(err, env.Stop())
	}
	if err := r.step("stop", env.Stop); err != nil {
		return err
	}
	return filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
		if path != folder {
			r.Left = append(r.Left, path)
		}
		return err
	})
}

func (r *report) use(ctx context.Context, env *envtest.Environment) error {
	admin, err := client.NewWithWatch(env.Config, client.Options{})
	if err != nil {
		return err
	}
	if err := r.step("write", func() error { return writes(ctx, admin) }); err != nil {
		return err
	}
	if err := r.step("users", func() error { return r.users(ctx, env, admin) }); err != nil {
		return err
	}
	if !*watch {
		return nil
	}
	return r.step("watch", func() error { return watches(ctx, env.Config, admin) })
}

func writes(ctx context.Context, admin client.Client) error {
	colors := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "colors", Namespace: "default"}, Data: map[string]string{"a": "red"},
	}
	if err := admin.Create(ctx, colors); err != nil {
		return err
	}
	base := colors.DeepCopy()
	colors.Data["a"] = "green"
	if err := admin.Patch(ctx, colors, client.MergeFrom(base)); err != nil {
		return err
	}
	read := &corev1.ConfigMap{}
	if err := admin.Get(ctx, client.ObjectKeyFromObject(colors), read); err != nil {
		return err
	}
	if read.Data["a"] != "green" {
		return fmt.Errorf("read %v", read.Data)
	}
	// As envtest leaves ServiceAccount out, pods need no account.
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default"}}
	pod.Spec.Containers = []corev1.Container{{Name: "web", Image: "web"}}
	if err := admin.Create(ctx, pod); err != nil {
		return err
	}
	// What envtest made to sign tokens with signs them.
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "robot", Namespace: "default"}}
	if err := admin.Create(ctx, account); err != nil {
		return err
	}
	request := &authenticationv1.TokenRequest{}
	if err := admin.SubResource("token").Create(ctx, account, request); err != nil {
		return err
	}
	review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: request.Status.Token}}
	if err := admin.Create(ctx, review); err != nil {
		return err
	}
	if !review.Status.Authenticated {
		return fmt.Errorf("the token of a service account is not known: %s", review.Status.Error)
	}
	return nil
}

// users adds one, who may do nothing until a role is bound to a group of theirs.
func (r *report) users(ctx context.Context, env *envtest.Environment, admin client.Client) error {
	user, err := env.AddUser(envtest.User{Name: "alice", Groups: []string{"team"}}, nil)
	if err != nil {
		return err
	}
	alice, err := client.New(user.Config(), client.Options{})
	if err != nil {
		return err
	}
	review := &authenticationv1.SelfSubjectReview{}
	if err := alice.Create(ctx, review); err != nil {
		return err
	}
	r.Users = append(r.Users, review.Status.UserInfo.Username+" of "+strings.Join(review.Status.UserInfo.Groups, ", "))
	maps := &corev1.ConfigMapList{}
	if err := alice.List(ctx, maps, client.InNamespace("default")); !apierrors.IsForbidden(err) {
		return fmt.Errorf("expected to be forbidden, found %w", err)
	}
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "team"}}
	binding.RoleRef = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"}
	binding.Subjects = []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "Group", Name: "team"}}
	if err := admin.Create(ctx, binding); err != nil {
		return err
	}
	for ctx.Err() == nil {
		if err := alice.List(ctx, maps, client.InNamespace("default")); err == nil {
			return nil
		} else if !apierrors.IsForbidden(err) {
			return err
		}
		time.Sleep(10 * time.Millisecond)
	}
	return ctx.Err()
}

// watches opens a watch and a cache, which go on until the control plane ends.
func watches(ctx context.Context, config *rest.Config, admin client.WithWatch) error {
	changes, err := admin.Watch(ctx, &corev1.ConfigMapList{}, client.InNamespace("default"))
	if err != nil {
		return err
	}
	if event := <-changes.ResultChan(); event.Object == nil {
		return errors.New("the watch shows nothing")
	}
	informers, err := cache.New(config, cache.Options{Scheme: scheme.Scheme})
	if err != nil {
		return err
	}
	for _, object := range []client.Object{&corev1.Pod{}, &corev1.Secret{}, &corev1.ConfigMap{}} {
		if _, err := informers.GetInformer(ctx, object, cache.BlockUntilSynced(false)); err != nil {
			return err
		}
	}
	go func() { _ = informers.Start(ctx) }()
	if !informers.WaitForCacheSync(ctx) {
		return errors.New("the cache has not synced")
	}
	return nil
}
