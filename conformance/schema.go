// The JSON schema of manifests, manifest.schema.json, and a validator for what of JSON Schema it uses.

package conformance

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"sync"
	"unicode/utf8"
)

// SchemaText is the JSON Schema (draft 2020-12) of manifests.
//
//go:embed manifest.schema.json
var SchemaText []byte

// rule is a node of a schema. The keywords here are all that manifest.schema.json may use; others are an
// error when it is read.
type rule struct {
	Schema      string           `json:"$schema"`
	ID          string           `json:"$id"`
	Title       string           `json:"title"`
	Description string           `json:"description"`
	Defs        map[string]*rule `json:"$defs"`
	Ref         string           `json:"$ref"`
	Type        any              `json:"type"` // a name, or a list of names
	Const       any              `json:"const"`
	Enum        []any            `json:"enum"`
	Pattern     string           `json:"pattern"`
	MinLength   int              `json:"minLength"`
	Minimum     *float64         `json:"minimum"`
	Properties  map[string]*rule `json:"properties"`
	Required    []string         `json:"required"`
	// AdditionalProperties is false, or the rule of values whose names Properties lacks.
	AdditionalProperties json.RawMessage `json:"additionalProperties"`
	Items                *rule           `json:"items"`
	MinItems             int             `json:"minItems"`
	MaxItems             *int            `json:"maxItems"`

	pattern *regexp.Regexp
	others  *rule // of AdditionalProperties
	closed  bool  // AdditionalProperties is false
}

// manifestRule is the schema, read once.
var manifestRule = sync.OnceValues(func() (*rule, error) {
	r := new(rule)
	if err := strictly(SchemaText, r); err != nil {
		return nil, err
	}
	return r, r.prepare()
})

func strictly(text []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	return d.Decode(v)
}

// prepare compiles patterns and the rules of additional properties, below r.
func (r *rule) prepare() (err error) {
	if r.Pattern != "" {
		if r.pattern, err = regexp.Compile(r.Pattern); err != nil {
			return err
		}
	}
	switch text := string(r.AdditionalProperties); text {
	case "", "true":
	case "false":
		r.closed = true
	default:
		r.others = new(rule)
		if err := strictly(r.AdditionalProperties, r.others); err != nil {
			return err
		}
	}
	below := []*rule{r.Items, r.others}
	for _, m := range []map[string]*rule{r.Defs, r.Properties} {
		for _, x := range m {
			below = append(below, x)
		}
	}
	for _, x := range below {
		if x != nil {
			if err := x.prepare(); err != nil {
				return err
			}
		}
	}
	return nil
}

// mostOfValue bounds the text of each member of a manifest, and of each element of its lists: JSON takes many times its
// length in memory.
const mostOfValue = 1 << 20

// schemaCheck says where text, which is JSON, is not what the schema describes. Of lists, which are nearly all of a
// manifest, it looks at one element at a time, and ends at the first that is wrong.
func schemaCheck(text []byte) error {
	root, err := manifestRule()
	if err != nil {
		return fmt.Errorf("manifest.schema.json: %w", err)
	}
	d := json.NewDecoder(bytes.NewReader(text))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return fmt.Errorf("the manifest: want %v, not %v", root.Type, t)
	}
	seen := map[string]any{}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return err
		}
		name := t.(string) // of a member
		p := root.Properties[name]
		if seen[name] = nil; p == nil {
			return fmt.Errorf("the manifest: unknown %q", name)
		}
		if err := p.checkMember(d, root, "."+name); err != nil {
			return err
		}
	}
	return root.lacks(seen, "")
}

// checkMember reads a member of a manifest.
func (r *rule) checkMember(d *json.Decoder, root *rule, path string) error {
	if r.Items == nil || r.Type != "array" {
		return r.checkNext(d, root, path)
	}
	if t, err := d.Token(); err != nil || t != json.Delim('[') {
		return fmt.Errorf("%s: want array, not %v", orTop(path), t)
	}
	n := 0
	for ; d.More() && (r.MaxItems == nil || n <= *r.MaxItems); n++ {
		if err := r.Items.checkNext(d, root, fmt.Sprintf("%s[%d]", path, n)); err != nil {
			return err
		}
	}
	if err := r.counted(n, path); err != nil {
		return err
	}
	_, err := d.Token()
	return err
}

// checkNext reads a value that is not long.
func (r *rule) checkNext(d *json.Decoder, root *rule, path string) error {
	var text json.RawMessage
	if err := d.Decode(&text); err != nil {
		return err
	}
	if len(text) > mostOfValue {
		return fmt.Errorf("%s: %d bytes, at most %d are read", orTop(path), len(text), mostOfValue)
	}
	var v any
	if err := json.Unmarshal(text, &v); err != nil {
		return err
	}
	return r.check(root, v, path)
}

// check says what is wrong with v, at a path.
func (r *rule) check(root *rule, v any, path string) error {
	if r.Ref != "" {
		x := root.Defs[r.Ref[len("#/$defs/"):]]
		if x == nil {
			return fmt.Errorf("the schema lacks %s", r.Ref)
		}
		return x.check(root, v, path)
	}
	wrong := func(format string, a ...any) error {
		return fmt.Errorf("%s: %s", orTop(path), fmt.Sprintf(format, a...))
	}
	if !r.typed(v) {
		return wrong("want %v, not %s", r.Type, brief(v))
	}
	if r.Const != nil && r.Const != v {
		return wrong("want %v, not %s", r.Const, brief(v))
	}
	if len(r.Enum) > 0 && !slices.Contains(r.Enum, v) {
		return wrong("want one of %v, not %s", r.Enum, brief(v))
	}
	switch v := v.(type) {
	case string:
		if r.pattern != nil && !r.pattern.MatchString(v) || utf8.RuneCountInString(v) < r.MinLength {
			return wrong("%s does not match %q", brief(v), r.Pattern)
		}
	case float64:
		if r.Minimum != nil && v < *r.Minimum {
			return wrong("%v is below %v", v, *r.Minimum)
		}
	case []any:
		return r.list(root, v, path)
	case map[string]any:
		return r.object(root, v, path)
	}
	return nil
}

func (r *rule) list(root *rule, v []any, path string) error {
	if err := r.counted(len(v), path); err != nil {
		return err
	}
	for i, x := range v {
		if r.Items != nil {
			if err := r.Items.check(root, x, fmt.Sprintf("%s[%d]", path, i)); err != nil {
				return err
			}
		}
	}
	return nil
}

// counted refuses lists that are too short or too long.
func (r *rule) counted(n int, path string) error {
	if n < r.MinItems || r.MaxItems != nil && n > *r.MaxItems {
		return fmt.Errorf("%s: a list of %d", orTop(path), n)
	}
	return nil
}

// lacks names a member that there must be.
func (r *rule) lacks(v map[string]any, path string) error {
	for _, name := range r.Required {
		if _, ok := v[name]; !ok {
			return fmt.Errorf("%s: %q is missing", orTop(path), name)
		}
	}
	return nil
}

func (r *rule) object(root *rule, v map[string]any, path string) error {
	if err := r.lacks(v, path); err != nil {
		return err
	}
	for name, x := range v {
		p := r.Properties[name]
		if p == nil {
			p = r.others
		}
		switch {
		case p == nil && r.closed:
			return fmt.Errorf("%s: unknown %q", orTop(path), name)
		case p != nil:
			if err := p.check(root, x, path+"."+name); err != nil {
				return err
			}
		}
	}
	return nil
}

// typed reports whether v is of one of the rule's types.
func (r *rule) typed(v any) bool {
	switch t := r.Type.(type) {
	case string:
		return isA(v, t)
	case []any:
		return slices.ContainsFunc(t, func(x any) bool { s, ok := x.(string); return ok && isA(v, s) })
	}
	return true
}

func isA(v any, name string) bool {
	switch v := v.(type) {
	case nil:
		return name == "null"
	case bool:
		return name == "boolean"
	case string:
		return name == "string"
	case float64:
		return name == "number" || name == "integer" && v == math.Trunc(v)
	case []any:
		return name == "array"
	}
	return name == "object"
}

func orTop(path string) string {
	if path == "" {
		return "the manifest"
	}
	return path[1:]
}

// brief is v as JSON, shortened.
func brief(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	if len(text) > 60 {
		text = append(text[:57:57], "..."...)
	}
	return string(text)
}
