// Package api has the kind Site of example.com/v1: a web site that some replicas of an image serve.
package api

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/scheme"
)

// GroupVersion is that of the kinds here.
var GroupVersion = schema.GroupVersion{Group: "example.com", Version: "v1"}

var builder = &scheme.Builder{GroupVersion: GroupVersion}

// AddToScheme makes the kinds known.
var AddToScheme = builder.Register(&Site{}, &SiteList{}).AddToScheme

// SiteSpec is what somebody asks for.
type SiteSpec struct {
	Image    string `json:"image"`
	Replicas int32  `json:"replicas,omitempty"`
}

// SiteStatus is what became of it: how many replicas serve the present spec, and whether all do.
type SiteStatus struct {
	ReadyReplicas int32              `json:"readyReplicas,omitempty"`
	Conditions    []metav1.Condition `json:"conditions,omitempty"`
}

// Site is a web site.
type Site struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   SiteSpec   `json:"spec"`
	Status SiteStatus `json:"status,omitempty"`
}

// SiteList is some of them.
type SiteList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Site `json:"items"`
}

// DeepCopy returns a Site that shares nothing with this one.
func (s *Site) DeepCopy() *Site {
	copied := *s
	s.ObjectMeta.DeepCopyInto(&copied.ObjectMeta)
	copied.Status.Conditions = make([]metav1.Condition, len(s.Status.Conditions))
	copy(copied.Status.Conditions, s.Status.Conditions)
	return &copied
}

// DeepCopyObject is DeepCopy for those who know no Sites.
func (s *Site) DeepCopyObject() runtime.Object { return s.DeepCopy() }

// DeepCopyObject returns a list that shares nothing with this one.
func (l *SiteList) DeepCopyObject() runtime.Object {
	copied := &SiteList{TypeMeta: l.TypeMeta, Items: make([]Site, len(l.Items))}
	l.ListMeta.DeepCopyInto(&copied.ListMeta)
	for i := range l.Items {
		copied.Items[i] = *l.Items[i].DeepCopy()
	}
	return copied
}
