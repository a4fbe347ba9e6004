package wallet_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"homeport.dev/homeport/internal/clock"
	"homeport.dev/homeport/internal/id"
	"homeport.dev/homeport/internal/money"
	"homeport.dev/homeport/internal/pg"
	"homeport.dev/homeport/internal/pg/pgtest"
	"homeport.dev/homeport/internal/wallet"
)

// The benchmarks compare with what the database itself can do, in pairs that
// take turns, and print one markdown table each. HOMEPORT_BENCH_SEGMENTS,
// HOMEPORT_BENCH_MANY and HOMEPORT_BENCH_SECONDS give the full size: 100000,
// 1000000 and 8.

func benchSize(name string, smoke int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil && n > 0 {
		return n
	}
	return smoke
}

// benchPairs is 1 for a smoke: enough to keep the benchmarks working.
var benchPairs = benchSize("HOMEPORT_BENCH_PAIRS", 1)

// A pair is what one turn of both took: wall seconds and the backend's CPU
// seconds.
type pair struct{ ours, theirs, oursCPU, theirsCPU float64 }

func printPairs(title string, pairs []pair, ratio func(pair) (wall, cpu float64)) {
	var walls, cpus []float64
	for _, p := range pairs {
		wall, cpu := ratio(p)
		walls, cpus = append(walls, wall), append(cpus, cpu)
	}
	slices.Sort(walls)
	slices.Sort(cpus)
	load, _ := os.ReadFile("/proc/loadavg")
	fmt.Printf("\n### %s\n\n| pair | ours s | theirs s | ours CPU s | theirs CPU s | ratio | CPU ratio |\n|---|---|---|---|---|---|---|\n", title)
	for i, p := range pairs {
		wall, cpu := ratio(p)
		fmt.Printf("| %d | %.6f | %.6f | %.2f | %.2f | %.2f | %.2f |\n", i+1, p.ours, p.theirs, p.oursCPU, p.theirsCPU, wall, cpu)
	}
	mid, last := len(pairs)/2, len(pairs)-1
	fmt.Printf("| median | | | | | **%.2f** (%.2f to %.2f) | **%.2f** (%.2f to %.2f) |\n\nload %s\n",
		walls[mid], walls[0], walls[last], cpus[mid], cpus[0], cpus[last], strings.TrimSpace(string(load)))
}

// mostMemory is what a backend may hold for itself however much it settles: it
// goes batch by batch.
const mostMemory = 128 << 20

// BenchmarkSettle settles a day of many segments beside an insert … select of
// the very rows that it made, into a table with the same indexes and checks.
func BenchmarkSettle(b *testing.B) {
	settleBeside(b, benchSize("HOMEPORT_BENCH_SEGMENTS", 2000), benchPairs, 0.60)
}

// BenchmarkSettleMany does the same with ten times as much.
func BenchmarkSettleMany(b *testing.B) {
	settleBeside(b, benchSize("HOMEPORT_BENCH_MANY", 4000), min(3, benchPairs), 0.55)
}

func settleBeside(b *testing.B, n, turns int, bar float64) {
	b.Helper()
	address := pgtest.URL(b) + "&pool_max_conns=1&statement_timeout=0" // a million rows take their time
	pool, err := pg.Open(b.Context(), address)
	if err != nil {
		b.Fatal(err)
	}
	defer pool.Close()
	w := wallet.New(wallet.Deps{Pool: pool, Clock: clock.New(), Logger: slog.New(slog.DiscardHandler)})
	exec := func(sql string, args ...any) {
		if _, err := pool.Exec(b.Context(), sql, args...); err != nil {
			b.Fatal(err)
		}
	}
	start := noon.Truncate(24 * time.Hour)
	exec(`insert into account (id, team_id, kind) select gen_random_uuid(), gen_random_uuid(), 'wallet' from generate_series(1, $1)`, max(1, n/4))
	exec(`insert into account (id, team_id, kind) select gen_random_uuid(), team_id, 'receivable' from account where kind = 'wallet'`)
	exec(`insert into wallet (team_id, account_id, receivable_account_id, balance_usd_micro, receivable_usd_micro, settled_us, due_us,
		burn_usd_micro_per_hour, pod_burn_usd_micro_per_hour, month_us, month_spent_usd_micro, version, created_at)
		select w.team_id, w.id, r.id, 1000000000000, 0, $1::bigint, $1::bigint + 86400000000, 0, 0, $1::bigint, 0, 0, $2
		from account w join account r on r.team_id = w.team_id and r.kind = 'receivable' where w.kind = 'wallet'`, start.UnixMicro(), start)
	exec(`insert into segment (id, team_id, resource_id, kind, rate_usd_micro_per_hour, started_us, description)
		select gen_random_uuid(), team_id, gen_random_uuid(), case g when 1 then 'pod-runtime' else 'volume-storage' end,
			100000 + g * 12345, $1::bigint - g * 1000, '' from wallet, generate_series(1, 4) g`, start.UnixMicro())
	exec(`update wallet w set burn_usd_micro_per_hour = s.burn, pod_burn_usd_micro_per_hour = s.pods from (
		select team_id, sum(rate_usd_micro_per_hour) burn, sum(rate_usd_micro_per_hour) filter (where kind = 'pod-runtime') pods
		from segment group by team_id) s where s.team_id = w.team_id`)
	exec(`insert into transfer (debit_account_id, credit_account_id, amount_usd_micro, code, key, team_id, description, created_at)
		select (select id from account where kind = 'test_clearing'), account_id, balance_usd_micro, 'credit', team_id::text, team_id, '', $1 from wallet`, start)
	exec(`create table transfer_beside (like transfer including all)`)
	for _, table := range []string{"account", "wallet", "segment"} {
		exec("vacuum analyze " + table)
	}
	var backend int
	if err := pool.QueryRow(b.Context(), `select pg_backend_pid()`).Scan(&backend); err != nil {
		b.Fatal(err)
	}
	const columns = `debit_account_id, credit_account_id, amount_usd_micro, code, key, team_id, kind, resource_id,
		segment_id, from_us, to_us, day_us, reference_id, description, created_at`
	logged := func() (bytes float64) {
		if err := pool.QueryRow(b.Context(), `select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')`).Scan(&bytes); err != nil {
			b.Fatal(err)
		}
		return bytes
	}
	timed := func(fn func()) (wall, cpu, log float64) {
		from, before, at := logged(), cpuSeconds(backend), time.Now()
		fn()
		wall, cpu = time.Since(at).Seconds(), cpuSeconds(backend)-before
		return wall, cpu, logged() - from
	}
	pairs, logs := make([]pair, turns), make([]pair, turns)
	for i := range pairs {
		p, end := &pairs[i], start.AddDate(0, 0, i+1)
		p.ours, p.oursCPU, logs[i].ours = timed(func() {
			if settled, err := w.SettleDue(b.Context(), end); err != nil || settled != max(1, n/4) {
				b.Fatalf("settled %d wallets: %v", settled, err)
			}
		})
		exec(`create table made as select `+columns+` from transfer where day_us = $1`, end.AddDate(0, 0, -1).UnixMicro())
		exec(`vacuum analyze made`)
		p.theirs, p.theirsCPU, logs[i].theirs = timed(func() {
			exec(`insert into transfer_beside (` + columns + `) select ` + columns + ` from made`)
		})
		exec(`drop table made`)
		logs[i].ours /= float64(n)
		logs[i].theirs /= float64(n)
	}
	if held := ownMemory(backend); held > mostMemory {
		b.Errorf("the backend holds %d bytes for itself after %d segments, want at most %d", held, n, mostMemory)
	}
	verifyBooks(b, w)
	printPairs(fmt.Sprintf("Settle %d segments beside insert … select with the same indexes (bar >= %.2f)", n, bar), pairs,
		func(p pair) (float64, float64) { return p.theirs / p.ours, p.theirsCPU / max(p.oursCPU, 0.01) })
	printPairs(fmt.Sprintf("Log written for each of %d settled segments beside insert … select (in bytes; bar <= 1.25)", n), logs,
		func(p pair) (float64, float64) { return p.ours / p.theirs, 0 })
}

// verifyBooks names the first problems of the books, and counts them all.
func verifyBooks(b *testing.B, w *wallet.Service) {
	b.Helper()
	problems, err := w.Verify(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	for _, p := range problems[:min(20, len(problems))] {
		b.Error(p)
	}
	if len(problems) > 0 {
		b.Fatalf("the books have %d problems", len(problems))
	}
}

// ownMemory is what a process of this machine holds that it shares with no
// other, in bytes; 0 when unknown.
func ownMemory(pid int) int {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	_, after, _ := strings.Cut(string(status), "RssAnon:")
	kB, _ := strconv.Atoi(strings.Fields(after + " 0")[0]) // 0 on other systems
	return kB << 10
}

// cpuSeconds is the CPU time of a process of this machine, 0 when unknown.
func cpuSeconds(pid int) float64 {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	_, after, _ := strings.Cut(string(stat), ") ")
	fields := strings.Fields(after)
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return float64(user+system) / 100
}

// A name that stays behind in a script ends pgbench, and is seen by nobody but
// the whole check.
func TestBenchScriptsNameEveryValue(t *testing.T) {
	t.Parallel()
	for _, script := range []string{wallet.CreditScript(), wallet.RunningCreditScript()} {
		if left := regexp.MustCompile(`@[a-z_]+`).FindString(script); left != "" {
			t.Errorf("no value for %s in:\n%s", left, script)
		}
	}
}

// BenchmarkTransfer posts credits to many wallets, and to one, beside pgbench's
// TPC-B, all by 8 clients of pgbench on the same server; and credits and ends of
// the money by the Go service with 8 clients, for comparison.
func BenchmarkTransfer(b *testing.B) {
	pgbench, ok := findPgbench()
	if !ok {
		b.Skip("pgbench is not installed")
	}
	address := pgtest.URL(b)
	pool, err := pg.Open(b.Context(), address)
	if err != nil {
		b.Fatal(err)
	}
	defer pool.Close()
	script := func(name, text string) string {
		path := filepath.Join(b.TempDir(), name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			b.Fatal(err)
		}
		return path
	}
	credit := func(script string, first, last int) []string {
		return []string{"-f", script, "-D", "first=" + strconv.Itoa(first), "-D", "last=" + strconv.Itoa(last)}
	}
	atRest, running := script("credit.sql", wallet.CreditScript()), script("running.sql", wallet.RunningCreditScript())
	seconds := benchSize("HOMEPORT_BENCH_SECONDS", 1)
	run := func(args ...string) string {
		cmd := exec.CommandContext(b.Context(), pgbench, append(args, databaseOf(b, address))...)
		out, err := cmd.CombinedOutput()
		if err != nil {
			b.Fatalf("pgbench: %v: %s", err, out)
		}
		return string(out)
	}
	tps := regexp.MustCompile(`tps = ([0-9.]+)`)
	each := func(args ...string) float64 {
		out := run(append([]string{"-n", "-M", "prepared", "-c", "8", "-j", "2", "-T", strconv.Itoa(seconds)}, args...)...)
		if !strings.Contains(out, "failed transactions: 0 ") {
			b.Errorf("transactions failed: %s", out)
		}
		n, err := strconv.ParseFloat(tps.FindStringSubmatch(out)[1], 64)
		if err != nil {
			b.Fatal(err)
		}
		return 1 / n
	}
	run("-i", "-q", "-s", "10")
	const first = 100_000 // the scripts want six digits
	teams := benchTeams(b, pool, first)
	w := wallet.New(wallet.Deps{Pool: pool, Clock: clock.New(), Logger: slog.New(slog.DiscardHandler)})
	many, hot, busy, service := make([]pair, benchPairs), make([]pair, benchPairs), make([]pair, benchPairs), make([]pair, benchPairs)
	ended := make([]pair, benchPairs)
	for i := range benchPairs {
		many[i].theirs = each()
		many[i].ours = each(credit(atRest, first, first+len(teams)-1)...)
		hot[i].theirs = each()
		hot[i].ours = each(credit(atRest, first, first)...)
		service[i] = pair{theirs: hot[i].theirs, ours: 1 / creditsPerSecond(b, pool, w, teams, seconds)}
	}
	verifyBooks(b, w) // the script of running wallets moves what they wait for by a guess
	for i, id := range teams {
		start := wallet.Start{TeamID: id, ResourceID: id, Kind: wallet.PodRuntime, Rate: money.Rate(money.Cent), At: noon}
		if err := pg.InTx(b.Context(), pool, func(tx pgx.Tx) error { return w.StartTx(b.Context(), tx, start) }); err != nil {
			b.Fatalf("start meter %d: %v", i, err)
		}
	}
	for i := range benchPairs {
		busy[i].theirs = each()
		busy[i].ours = each(credit(running, first, first+len(teams)-1)...)
	}
	for i := range benchPairs {
		ended[i].theirs = each()
		ended[i].ours = secondsOfAnEnd(b, pool, w, benchTeams(b, pool, first+(i+1)*len(teams)))
	}
	ratio := func(p pair) (float64, float64) { return p.theirs / p.ours, 0 }
	const per = ", 8 clients, beside TPC-B (seconds per transaction"
	printPairs("One credit, distinct wallets"+per+"; bar >= 1.2)", many, ratio)
	printPairs("One credit, one hot wallet"+per+"; bar >= 0.3)", hot, ratio)
	printPairs("One credit, distinct wallets with a pod running"+per+")", busy, ratio)
	printPairs("One credit, distinct wallets, through the Go service"+per+")", service, ratio)
	printPairs("One end of the money, distinct wallets, through the Go service"+per+")", ended, ratio)
}

// secondsOfAnEnd has each team's money run out, and returns what it takes to
// find that and to end its meter, by 8 clients.
func secondsOfAnEnd(b *testing.B, pool *pgxpool.Pool, w *wallet.Service, teams []uuid.UUID) float64 {
	b.Helper()
	for _, teamID := range teams {
		err := pg.InTx(b.Context(), pool, func(tx pgx.Tx) error {
			_, err := w.CreditTx(b.Context(), tx, wallet.Credit{TeamID: teamID, Amount: money.Cent, Source: wallet.Test, Key: id.New().String(), At: noon})
			if err != nil {
				return err
			}
			start := wallet.Start{TeamID: teamID, ResourceID: teamID, Kind: wallet.PodRuntime, Rate: money.Rate(36 * money.Dollar), At: noon}
			return w.StartTx(b.Context(), tx, start)
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	var next, ended atomic.Int64
	var wait sync.WaitGroup
	began := time.Now()
	for range 8 {
		wait.Go(func() {
			for i := next.Add(1) - 1; int(i) < len(teams); i = next.Add(1) - 1 {
				err := pg.InTx(b.Context(), pool, func(tx pgx.Tx) error {
					_, first, err := w.ExhaustTx(b.Context(), tx, teams[i], noon.Add(time.Minute))
					if first {
						ended.Add(1)
					}
					return err
				})
				if err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wait.Wait()
	took := time.Since(began)
	if int(ended.Load()) != len(teams) {
		b.Errorf("%d of %d wallets ran dry", ended.Load(), len(teams))
	}
	return took.Seconds() / float64(len(teams))
}

// benchTeams opens 1000 wallets, from a number on; wallet.CreditScript can
// compute their ids.
func benchTeams(b *testing.B, pool *pgxpool.Pool, first int) []uuid.UUID {
	b.Helper()
	const n = 1000
	for _, sql := range []string{
		`insert into account (id, team_id, kind) select ('00000000-0000-4000-b000-' || lpad(g::text, 12, '0'))::uuid,
			('00000000-0000-4000-a000-' || lpad(g::text, 12, '0'))::uuid, 'wallet' from generate_series($1::int, $2::int) g`,
		`insert into account (id, team_id, kind) select ('00000000-0000-4000-9000-' || lpad(g::text, 12, '0'))::uuid,
			('00000000-0000-4000-a000-' || lpad(g::text, 12, '0'))::uuid, 'receivable' from generate_series($1::int, $2::int) g`,
		`insert into wallet (team_id, account_id, receivable_account_id, balance_usd_micro, receivable_usd_micro, settled_us,
			burn_usd_micro_per_hour, pod_burn_usd_micro_per_hour, month_us, month_spent_usd_micro, version, created_at)
			select w.team_id, w.id, r.id, 0, 0, 1804982400000000, 0, 0, 1804982400000000, 0, 0, '2027-03-14'
			from account w join account r on r.team_id = w.team_id and r.kind = 'receivable'
			where w.kind = 'wallet' and right(w.team_id::text, 12)::bigint between $1::int and $2::int`,
	} {
		if _, err := pool.Exec(b.Context(), sql, first, first+n-1); err != nil {
			b.Fatal(err)
		}
	}
	rows, err := pool.Query(b.Context(), `select team_id from wallet where right(team_id::text, 12)::bigint between $1 and $2`, first, first+n-1)
	if err != nil {
		b.Fatal(err)
	}
	teams, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
	if err != nil {
		b.Fatal(err)
	}
	return teams
}

func creditsPerSecond(b *testing.B, pool *pgxpool.Pool, w *wallet.Service, teams []uuid.UUID, seconds int) float64 {
	b.Helper()
	var done atomic.Int64
	var wait sync.WaitGroup
	start := time.Now()
	ctx, cancel := context.WithTimeout(b.Context(), time.Duration(seconds)*time.Second)
	defer cancel()
	for client := range 8 {
		wait.Go(func() {
			for i := client; ctx.Err() == nil; i += 8 {
				err := pg.InTx(b.Context(), pool, func(tx pgx.Tx) error {
					_, err := w.CreditTx(b.Context(), tx, wallet.Credit{
						TeamID: teams[i%len(teams)], Amount: money.Cent, Source: wallet.Test, Key: id.New().String(), At: noon,
					})
					return err
				})
				if err != nil {
					b.Error(err)
					return
				}
				done.Add(1)
			}
		})
	}
	wait.Wait()
	return float64(done.Load()) / time.Since(start).Seconds()
}

func findPgbench() (string, bool) {
	if path, err := exec.LookPath("pgbench"); err == nil {
		return path, true
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/pgbench")
	if len(found) == 0 {
		return "", false
	}
	return found[len(found)-1], true
}

// databaseOf writes an address as libpq takes it, without pgx's own parameters.
func databaseOf(b *testing.B, address string) string {
	b.Helper()
	u, err := url.Parse(address)
	if err != nil {
		b.Fatal(err)
	}
	q := u.Query()
	for name := range q {
		if strings.HasPrefix(name, "pool_") || strings.HasPrefix(name, "default_") {
			q.Del(name)
		}
	}
	u.RawQuery = q.Encode()
	return u.String()
}
