// Package controller makes a Deployment of each Site, and tells in the Site's status how far it is.
package controller

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"steersman/examples/sites/api"
)

// SiteReconciler makes things so that they are as Sites say.
type SiteReconciler struct {
	client.Client
}

// SetupWithManager has the manager call Reconcile for every change of a Site or of a Deployment that it owns.
func (r *SiteReconciler) SetupWithManager(manager ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(manager).For(&api.Site{}).Owns(&appsv1.Deployment{}).Complete(r)
}

// Reconcile is called with the name of a Site. What it made of one that is gone is collected, as the Site owns it.
func (r *SiteReconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	site := &api.Site{}
	if err := r.Get(ctx, request.NamespacedName, site); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: site.Name, Namespace: site.Namespace}}
	_, err := controllerutil.CreateOrUpdate(ctx, r.Client, deployment, func() error {
		deploy(site, deployment)
		return controllerutil.SetControllerReference(site, deployment, r.Scheme())
	})
	if err != nil {
		return ctrl.Result{}, err
	}
	before := site.DeepCopy()
	site.Status = status(site, deployment)
	return ctrl.Result{}, r.Status().Patch(ctx, site, client.MergeFrom(before))
}

// deploy fills in what a Site says of its Deployment, and leaves alone what others say of it.
func deploy(site *api.Site, deployment *appsv1.Deployment) {
	labels := map[string]string{"example.com/site": site.Name}
	deployment.Spec.Replicas = &site.Spec.Replicas
	deployment.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	deployment.Spec.Template.Labels = labels
	if len(deployment.Spec.Template.Spec.Containers) == 0 {
		deployment.Spec.Template.Spec.Containers = []corev1.Container{{Name: "site"}}
	}
	deployment.Spec.Template.Spec.Containers[0].Image = site.Spec.Image
}

// status is what there is to tell of a Site and its Deployment.
func status(site *api.Site, deployment *appsv1.Deployment) api.SiteStatus {
	found := site.DeepCopy().Status
	ready := int32(0)
	if deployment.Status.ObservedGeneration == deployment.Generation {
		ready = min(deployment.Status.ReadyReplicas, deployment.Status.UpdatedReplicas)
	}
	found.ReadyReplicas = ready
	condition := metav1.Condition{
		Type: "Ready", Status: metav1.ConditionFalse, Reason: "Waiting", ObservedGeneration: site.Generation,
		Message: fmt.Sprintf("%d of %d replicas are ready", ready, site.Spec.Replicas),
	}
	if ready == site.Spec.Replicas {
		condition.Status, condition.Reason = metav1.ConditionTrue, "Served"
	}
	meta.SetStatusCondition(&found.Conditions, condition)
	return found
}
