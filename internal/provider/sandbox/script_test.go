//go:build linux

package sandbox_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"testing"

	"homeport.dev/homeport/internal/provider"
	"homeport.dev/homeport/internal/provider/sandbox"
)

// plain returns two nodes on one folder that launch nothing.
func plain(t *testing.T) (*sandbox.Sandbox, *sandbox.Sandbox) {
	t.Helper()
	dir := t.TempDir()
	one, err := newSandbox(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	two, err := newSandbox(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	return one, two
}

func TestScriptHoldsForAllNodesAndCounts(t *testing.T) {
	t.Parallel()
	one, two := plain(t)
	script := sandbox.Script{Provider: "saltpier", Faults: []sandbox.Fault{{Op: sandbox.OpOffers, Kind: "error", Times: 2}}}
	if err := one.SetScript(t.Context(), script); err != nil {
		t.Fatal(err)
	}
	if got, err := two.Script(); err != nil || !reflect.DeepEqual(got, script) {
		t.Errorf("the other node has %+v, %v", got, err)
	}
	if _, err := two.Clouds()["coldwharf"].Offers(t.Context()); err != nil {
		t.Errorf("a cloud that the script is not for: %v", err)
	}
	for i, s := range []*sandbox.Sandbox{one, two, one} {
		if _, err := s.Clouds()["saltpier"].Offers(t.Context()); (err != nil) != (i < 2) {
			t.Errorf("call %d: %v", i, err)
		}
	}
	if err := two.ClearScript(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got, err := one.Script(); err != nil || !reflect.DeepEqual(got, sandbox.Script{}) {
		t.Errorf("after it was cleared: %+v, %v", got, err)
	}
}

func TestScriptMovesPricesAndStock(t *testing.T) {
	t.Parallel()
	s, _ := plain(t)
	c := s.Clouds()["saltpier"]
	before, err := c.Offers(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.SetScript(t.Context(), sandbox.Script{Prices: sandbox.Prices{Factor: "1.1"}, Stock: map[string]int{"H100_80GB": 0, "A100_80GB": 2}}); err != nil {
		t.Fatal(err)
	}
	after, err := c.Offers(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	was := map[string]provider.Offer{}
	for _, o := range before {
		was[fmt.Sprint(o.CloudID, o.GPUCount, o.DataCenterID)] = o
	}
	for _, o := range after {
		b := was[fmt.Sprint(o.CloudID, o.GPUCount, o.DataCenterID)]
		if o.GPUType == "H100_80GB" || o.GPUType == "A100_80GB" && o.GPUCount > 2 {
			t.Errorf("listed although there are not so many: %+v", o)
		}
		if int64(o.UpstreamPrice)*10 != int64(b.UpstreamPrice)*11 {
			t.Errorf("price %v became %v", b.UpstreamPrice, o.UpstreamPrice)
		}
	}
	if len(after) == 0 {
		t.Error("nothing is listed")
	}
	_, err = c.Launch(t.Context(), provider.Launch{Name: "hp-abcd-00000001-1", Offer: before[0], MaxPrice: before[0].UpstreamPrice * 2})
	if !errors.Is(err, provider.ErrNoCapacity) {
		t.Errorf("launch of what is sold out: %v", err)
	}
}

func TestScriptIsChecked(t *testing.T) {
	t.Parallel()
	s, _ := plain(t)
	for _, text := range []string{
		`{"provider":"aws"}`, `{"faults":[{"op":"launch","kind":"explode"}]}`, `{"faults":[{"op":"sell","kind":"error"}]}`,
		`{"faults":[{"op":"find","kind":"error","times":-1}]}`, `{"prices":{"factor":0}}`, `{"prices":{"factor":-1}}`, `{"stock":{"H100_80GB":-1}}`,
	} {
		var sc sandbox.Script
		if err := json.Unmarshal([]byte(text), &sc); err != nil {
			t.Fatal(err)
		}
		if err := s.SetScript(t.Context(), sc); !errors.Is(err, sandbox.ErrScript) {
			t.Errorf("%s: %v", text, err)
		}
	}
	var sc sandbox.Script
	text := `{"provider":"saltpier","faults":[{"op":"launch","kind":"no_capacity","times":1}],"prices":{"factor":1.1},"stock":{"H100_80GB":0}}`
	if err := json.Unmarshal([]byte(text), &sc); err != nil {
		t.Fatal(err)
	}
	if err := s.SetScript(t.Context(), sc); err != nil {
		t.Error(err)
	}
}
