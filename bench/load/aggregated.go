package main

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"time"
)

const (
	aggregatedGroup = "aggregated.load.example.com"
	aggregatedRoot  = "/apis/" + aggregatedGroup + "/v1"
	// availableIn is how long a server may take to find out that the one behind it answers.
	availableIn = 60 * time.Second
)

// aggregated reads an object of 3 KB through the server from one behind it, which is this program.
func aggregated(b *bench) error {
	behind, err := startBehind()
	if err != nil {
		return err
	}
	defer behind.server.Close()
	if err := b.publish(behind); err != nil {
		return err
	}
	ask := request{path: aggregatedRoot + "/namespaces/" + b.namespace + "/things/one"}
	if err := b.answers(ask); err != nil {
		return err
	}
	for _, workers := range b.opt.concurrency {
		name := fmt.Sprintf("aggregated/get/c%d", workers)
		if !b.wanted(name) {
			continue
		}
		op := func(w *worker, n int) error {
			got, err := b.client.do(b.ctx, w.id, ask, nil)
			w.bytes += got.size
			return err
		}
		b.warm(workers, op)
		b.emit(b.measure(name, workers, b.span(), 1<<30, op))
	}
	return nil
}

// behindServer is the server behind: HTTP/2 and HTTP/1.1 over TLS.
type behindServer struct {
	server *http.Server
	host   string
	port   int
}

func startBehind() (*behindServer, error) {
	certificate, _, err := selfSigned()
	if err != nil {
		return nil, err
	}
	host, err := ownAddress()
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		return nil, err
	}
	thing := fill(pods.body, "one", 1, "1")
	list := fmt.Appendf(nil, `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"%s/v1","resources":[{"name":"things","singularName":"thing","namespaced":true,"kind":"Thing","verbs":["get"]}]}`, aggregatedGroup)
	handler := func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "/things/one"):
			w.Header().Set("Content-Type", "application/json")
			w.Write(thing)
		case r.URL.Path == aggregatedRoot:
			w.Header().Set("Content-Type", "application/json")
			w.Write(list)
		default:
			http.NotFound(w, r)
		}
	}
	server := &http.Server{
		Handler:   http.HandlerFunc(handler),
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{certificate}},
		ErrorLog:  log.New(io.Discard, "", 0),
	}
	go server.ServeTLS(listener, "", "")
	return &behindServer{server, host, listener.Addr().(*net.TCPAddr).Port}, nil
}

// ownAddress is one of this machine that endpoints may have: none of loopback.
func ownAddress() (string, error) {
	probe, err := net.Dial("udp4", "192.0.2.1:9") // nothing is sent
	if err != nil {
		return "", err
	}
	defer probe.Close()
	return probe.LocalAddr().(*net.UDPAddr).IP.String(), nil
}

// publish makes the Service, its endpoint and the APIService.
func (b *bench) publish(behind *behindServer) error {
	bodies := []struct{ path, body string }{
		{"/api/v1/namespaces/" + b.namespace + "/services", `{"apiVersion":"v1","kind":"Service","metadata":{"name":"behind"},"spec":{"clusterIP":"None","ports":[{"name":"https","port":443}]}}`},
		{"/apis/discovery.k8s.io/v1/namespaces/" + b.namespace + "/endpointslices", fmt.Sprintf(`{"apiVersion":"discovery.k8s.io/v1","kind":"EndpointSlice","addressType":"IPv4","metadata":{"name":"behind-1","labels":{"kubernetes.io/service-name":"behind"}},"endpoints":[{"addresses":["%s"]}],"ports":[{"name":"https","port":%d}]}`, behind.host, behind.port)},
		{"/apis/apiregistration.k8s.io/v1/apiservices", fmt.Sprintf(`{"apiVersion":"apiregistration.k8s.io/v1","kind":"APIService","metadata":{"name":"v1.%s"},"spec":{"group":"%s","version":"v1","groupPriorityMinimum":1000,"versionPriority":15,"insecureSkipTLSVerify":true,"service":{"name":"behind","namespace":"%s"}}}`, aggregatedGroup, aggregatedGroup, b.namespace)},
	}
	for _, each := range bodies {
		if err := b.post(each.path, []byte(each.body)); err != nil {
			return err
		}
	}
	return nil
}

// answers waits until a request is answered with 200.
func (b *bench) answers(ask request) error {
	until := time.Now().Add(availableIn)
	for {
		_, err := b.client.do(b.ctx, 0, ask, new(bytes.Buffer))
		if err == nil || time.Now().After(until) {
			return err
		}
		time.Sleep(100 * time.Millisecond)
	}
}
