package main

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// gadget is one of many custom resources, each with a large definition of its own: ten in a group.
type gadget int

const gadgetsInGroup = 10

func (g gadget) group() string  { return fmt.Sprintf("team%d.bench.example.com", int(g)/gadgetsInGroup) }
func (g gadget) plural() string { return fmt.Sprintf("gadget%ds", int(g)) }

// kind is the resource, with objects like those of widgets.
func (g gadget) kind() *kind {
	object := strings.Replace(string(widgetBody(g.group())), `"kind":"Widget"`, fmt.Sprintf(`"kind":"Gadget%d"`, int(g)), 1)
	return &kind{"gadget", "/apis/" + g.group() + "/v1", g.plural(), []byte(object)}
}

// definition is a CRD of about 30 KB as tools generate them of Go types: the fields and rules of widgets, and some 200
// described ones that no object has. No two definitions have the same texts.
func (g gadget) definition() []byte {
	random := rand.New(rand.NewPCG(uint64(g), 2))
	var fields strings.Builder
	for number := 0; fields.Len() < gadgetFieldBytes; number++ {
		fmt.Fprintf(&fields, `,"%s%d":%s`, gadgetShapes[number%len(gadgetShapes)].name, number, gadgetShapes[number%len(gadgetShapes)].schema(random))
	}
	names := fmt.Sprintf(`"names":{"plural":%q,"singular":"gadget%d","kind":"Gadget%d","listKind":"Gadget%dList","shortNames":["gd%d"],"categories":["bench"]}`, g.plural(), g, g, g, g)
	columns := `"additionalPrinterColumns":[{"name":"Image","type":"string","jsonPath":".spec.image"},{"name":"Replicas","type":"integer","jsonPath":".spec.replicas"},{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}]`
	return []byte(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"` + g.plural() + "." + g.group() + `","labels":{"app":"load"},"annotations":{"controller-gen.example.com/version":"v0.19.0"}},"spec":{"group":"` + g.group() + `","scope":"Namespaced",` + names +
		`,"versions":[{"name":"v1","served":true,"storage":true,"subresources":{"status":{}},` + columns + `,"schema":{"openAPIV3Schema":` + widgetSchema(fields.String()) + `}}]}}`)
}

// gadgetFieldBytes of fields beside those of widgets make a definition of 30 KB.
const gadgetFieldBytes = 26_500

// shape makes schemas of one sort, each with texts of its own.
type shape struct {
	name   string
	schema func(*rand.Rand) string
}

var gadgetShapes = []shape{
	{"mode", func(r *rand.Rand) string {
		return described(r, `"type":"string","enum":["Always","IfNotPresent","Never"]`)
	}},
	{"count", func(r *rand.Rand) string {
		return described(r, fmt.Sprintf(`"type":"integer","format":"int32","minimum":0,"maximum":%d,"default":%d`, 100+r.IntN(1000), r.IntN(100)))
	}},
	{"secretRef", func(r *rand.Rand) string {
		return described(r, `"type":"object","required":["name"],"x-kubernetes-map-type":"atomic","properties":{"name":`+described(r, `"type":"string","maxLength":253,"default":""`)+`,"key":`+described(r, `"type":"string","pattern":"^[-._a-zA-Z0-9]+$"`)+`,"optional":`+described(r, `"type":"boolean"`)+`}`)
	}},
	{"env", func(r *rand.Rand) string {
		return described(r, `"type":"array","maxItems":64,"x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["name"],"items":{"type":"object","required":["name"],"properties":{"name":`+described(r, `"type":"string","maxLength":63`)+`,"value":`+described(r, `"type":"string"`)+`}}`)
	}},
	{"selector", func(r *rand.Rand) string {
		return described(r, `"type":"object","properties":{"matchLabels":`+described(r, `"type":"object","additionalProperties":{"type":"string"}`)+`,"matchExpressions":`+described(r, `"type":"array","x-kubernetes-list-type":"atomic","items":{"type":"object","required":["key","operator"],"properties":{"key":`+described(r, `"type":"string"`)+`,"operator":`+described(r, `"type":"string"`)+`,"values":`+described(r, `"type":"array","items":{"type":"string"},"x-kubernetes-list-type":"atomic"`)+`}}`)+`}`)
	}},
	{"limits", func(r *rand.Rand) string {
		return described(r, `"type":"object","additionalProperties":{"anyOf":[{"type":"integer"},{"type":"string"}],"pattern":"^(\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))))?$","x-kubernetes-int-or-string":true}`)
	}},
	{"window", func(r *rand.Rand) string {
		return described(r, `"type":"object","x-kubernetes-validations":[{"rule":"!has(self.last) || !has(self.first) || self.first <= self.last","message":"first must not be after last"}],"properties":{"first":`+described(r, `"type":"integer","format":"int64"`)+`,"last":`+described(r, `"type":"integer","format":"int64"`)+`,"period":`+described(r, `"type":"string","format":"duration"`)+`}`)
	}},
}

// described is a schema with a description of one to three sentences.
func described(random *rand.Rand, schema string) string {
	var text strings.Builder
	for sentence := range 1 + random.IntN(3) {
		for word := range 6 + random.IntN(10) {
			next := vocabulary[random.IntN(len(vocabulary))]
			switch {
			case word > 0:
				text.WriteByte(' ')
			case sentence > 0:
				text.WriteString(". ")
			}
			if word == 0 {
				next = strings.ToUpper(next[:1]) + next[1:]
			}
			text.WriteString(next)
		}
	}
	return `{"description":"` + text.String() + `.",` + schema + `}`
}

var vocabulary = strings.Fields(`the a an of to in for is are must may be when if not and or this that which with without by from as on
field value object name key list map reference secret namespace container volume image pod service label selector annotation policy
number default optional required empty valid unique immutable desired observed current last first new existing given
specifies references defines contains describes limits controls enables disables overrides replaces ignores matches selects restarts
controller operator cluster node scheduler resource request limit timeout duration seconds interval port protocol address host path
certificate issuer token user group role rule condition status reason message phase generation replica template strategy update`)
