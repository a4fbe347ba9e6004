package e2e_test

import (
	"net/http"
	"strings"
	"testing"

	"homeport.dev/homeport/internal/apitype"
)

// TestBadHostIsLeftForAnEqualOffer has a cloud deliver machines that are not
// what it sold. The real agent finds it out, and the pod is ready on another
// cloud, no dearer, with nothing left behind.
func TestBadHostIsLeftForAnEqualOffer(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.start()
	u := s.signIn()
	u.pay("25")
	u.addKey()
	var bad apitype.Offer
	all := steady(t, func() (map[string][]apitype.Offer, error) { return u.Resources(t.Context()) })
	for _, o := range all["H100_80GB"] {
		if o.Provider == "saltpier" && o.GPUCount == 1 && !o.IsSpot && o.Socket == "SXM5" && o.Country == "US" {
			bad = o
		}
	}
	v, err := u.CreateVolume(t.Context(), "data")
	if err != nil {
		t.Fatal(err)
	}
	for _, fault := range []string{"wrong_gpu", "slow_disk"} {
		script := `{"provider":"saltpier","faults":[{"op":"launch","kind":"` + fault + `"}]}`
		if resp, text := fetch(t, http.MethodPost, s.url+"/dev/sandbox", strings.NewReader(script), "application/json"); resp.StatusCode/100 != 2 {
			t.Fatalf("the script: %s", text)
		}
		p := u.rent(bad, v.ID)
		if p.Provider != "coldwharf" || p.GPUType != bad.GPUType {
			t.Errorf("%s: the pod is ready at %s", fault, p.Provider)
		}
		if got := u.run(p, "echo here > /workspace/a && cat /workspace/a"); got != "here\n" {
			t.Errorf("%s: the pod says %q", fault, got)
		}
		until(t, "the bad machine's end", func() bool { return len(s.machines()) == 1 })
		u.end(p.ID)
	}
	checkNothingLeft(t, s)
}
