package pod

import (
	"reflect"
	"slices"
	"strings"
	"testing"
)

// A list reads less than there is of a pod. A column that is new is either read
// by it, or known not to be shown.
func TestListReadsWhatUsersSee(t *testing.T) {
	t.Parallel()
	fields := func(text string) []string { // as pgx compares them
		return strings.Fields(strings.NewReplacer(",", " ", "_", "").Replace(text))
	}
	hidden := fields(`volume_epoch offer adapter max_rate_usd_micro_per_hour list_rate_usd_micro_per_hour host_key_sealed
		probe_key_sealed probe_key_line attempts ended_by_user_early final_paid_from_at relaunches`)
	_, columns, _ := strings.Cut(sqlListPods, "select ")
	columns, _, _ = strings.Cut(columns, "from pod")
	listed := fields(columns)
	for _, f := range reflect.VisibleFields(reflect.TypeFor[Pod]()) {
		column := strings.ToLower(f.Name)
		if tag := f.Tag.Get("db"); tag != "" {
			column = fields(tag)[0]
		}
		if known := slices.Contains(hidden, column) || strings.HasSuffix(column, "wallat"); known == slices.Contains(listed, column) {
			t.Errorf("column %s of a pod: is it shown?", column)
		}
	}
}
