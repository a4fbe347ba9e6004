package gpu_test

import (
	"encoding/json"
	"os"
	"testing"

	"homeport.dev/homeport/internal/provider/gpu"
	"homeport.dev/homeport/internal/provider/place"
	"homeport.dev/homeport/internal/provider/providertest/cloudtest"
)

// TestRecordedCatalogueSpeaksTheVocabulary reads what several clouds offered:
// every token, socket, size and country of it is one of ours.
func TestRecordedCatalogueSpeaksTheVocabulary(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile(cloudtest.Shared(t, "catalog/offers-sample.json"))
	if err != nil {
		t.Fatal(err)
	}
	var catalogue struct {
		Offers []struct {
			GPUType, Socket, Country string
			GPUCount, GPUMemory      int
		}
	}
	if err := json.Unmarshal(raw, &catalogue); err != nil || len(catalogue.Offers) < 300 {
		t.Fatalf("%d offers, %v", len(catalogue.Offers), err)
	}
	for _, o := range catalogue.Offers {
		one, ok := gpu.Lookup(o.GPUType)
		if !ok {
			t.Errorf("%s is not in the vocabulary", o.GPUType)
			continue
		}
		if one.VRAMGB*o.GPUCount != o.GPUMemory {
			t.Errorf("%d of %s have %d GB", o.GPUCount, o.GPUType, o.GPUMemory)
		}
		if found, ok := gpu.Find(o.GPUType, o.GPUMemory/o.GPUCount); !ok || found != one {
			t.Errorf("%s is found as %+v", o.GPUType, found)
		}
		if s := gpu.Socket(o.Socket, one); s != o.Socket {
			t.Errorf("socket %s of %s reads as %s", o.Socket, o.GPUType, s)
		}
		if c, ok := place.Country(o.Country); !ok || c != o.Country {
			t.Errorf("country %s reads as %s", o.Country, c)
		}
	}
}
