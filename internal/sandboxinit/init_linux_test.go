package sandboxinit

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

func TestPlanOfAnotherVersionIsRefused(t *testing.T) {
	t.Parallel()
	if _, err := readPlan(strings.NewReader(`{"dir":"/x","surprise":1}`)); err == nil {
		t.Error("an unknown member was ignored")
	}
	if _, err := readPlan(strings.NewReader("")); err == nil {
		t.Error("a plan that never came was taken")
	}
	if p, err := readPlan(strings.NewReader(`{"dir":"/x","ssh":2}`)); err != nil || p.Dir != "/x" || p.SSH != 2 {
		t.Errorf("%+v, %v", p, err)
	}
}

func TestReportTravels(t *testing.T) {
	t.Parallel()
	for _, want := range []error{nil, os.ErrPermission} {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		send(w, want)
		got := awaitReport(r)
		if (got == nil) != (want == nil) || want != nil && got.Error() != want.Error() {
			t.Errorf("sent %v, got %v", want, got)
		}
	}
	if err := awaitReport(strings.NewReader("")); err == nil {
		t.Error("the end of a stage passed for success")
	}
}

func TestRemovedFolderIsNoticed(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "run")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	held, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = held.Close() }()
	through := "/proc/self/fd/" + strconv.Itoa(int(held.Fd())) + "/."
	if removed(dir) || removed(through) {
		t.Error("a folder that is there counts as removed")
	}
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	if !removed(dir) || !removed(through) {
		t.Error("a removed folder is not noticed")
	}
}

func TestStartTimeNamesAProcess(t *testing.T) {
	t.Parallel()
	one, err := startTime(os.Getpid())
	if err != nil || one == "" || one == "0" {
		t.Errorf("%q, %v", one, err)
	}
	if _, err := startTime(1 << 30); err == nil {
		t.Error("a process that is not there has a start")
	}
}
