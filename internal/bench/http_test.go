package bench_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// plainEnv makes this test binary the minimal handler that the API is measured
// beside.
const plainEnv = "HOMEPORT_BENCH_PLAIN"

// A plainOrder is what the minimal handler needs to know.
type plainOrder struct{ Database, Team, Offers string }

// TestPlainServer is the peer of the API: net/http and one query, no rights, no
// session, no log. It prints its address and serves until it is killed.
func TestPlainServer(t *testing.T) {
	text := os.Getenv(plainEnv)
	if text == "" {
		t.Skip("only run as a process of its own")
	}
	var o plainOrder
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		t.Fatal(err)
	}
	offers, err := os.ReadFile(o.Offers)
	if err != nil {
		t.Fatal(err)
	}
	pool, err := pgxpool.New(t.Context(), o.Database)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/pods", func(w http.ResponseWriter, r *http.Request) { plainPods(w, r, pool, o.Team) })
	mux.HandleFunc("/balance", func(w http.ResponseWriter, r *http.Request) {
		var b struct {
			Balance int64 `json:"balance"`
		}
		err := pool.QueryRow(r.Context(), `select balance_usd_micro from wallet where team_id = $1`, o.Team).Scan(&b.Balance)
		plainAnswer(w, b, err)
	})
	mux.HandleFunc("/resources", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(offers) // the client went away
	})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println(l.Addr())
	server := &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	t.Fatal(server.Serve(l))
}

func plainPods(w http.ResponseWriter, r *http.Request, pool *pgxpool.Pool, team string) {
	type pod struct {
		ID          uuid.UUID  `json:"id"`
		TeamID      uuid.UUID  `json:"team_id"`
		VolumeID    uuid.UUID  `json:"volume_id"`
		SSHKeyID    uuid.UUID  `json:"ssh_key_id"`
		Status      string     `json:"status"`
		Progress    int        `json:"progress"`
		Provider    string     `json:"provider"`
		Country     string     `json:"country"`
		GPUType     string     `json:"gpu_type"`
		GPUCount    int        `json:"gpu_count"`
		Rate        int64      `json:"price"`
		SSHHost     string     `json:"ssh_host"`
		SSHPort     int        `json:"ssh_port"`
		Fingerprint string     `json:"host_key_fingerprint"`
		CreatedAt   time.Time  `json:"created_at"`
		ReadyAt     *time.Time `json:"ready_at"`
	}
	rows, _ := pool.Query(r.Context(), `select id, team_id, volume_id, ssh_key_id, status, progress, provider, country, gpu_type,
		gpu_count, rate_usd_micro_per_hour, ssh_host, ssh_port, host_key_fingerprint, created_at, ready_at
		from pod where team_id = $1 and status <> 'deleted' order by created_at desc`, team) // CollectRows has its error
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[pod])
	plainAnswer(w, list, err)
}

func plainAnswer(w http.ResponseWriter, v any, err error) {
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // the client went away
}

// startPlain runs the minimal handler beside the server.
func startPlain(t *testing.T, o plainOrder) (address string, pid int) {
	t.Helper()
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "-test.run", "^TestPlainServer$", "-test.timeout", "1h")
	cmd.Env = append(os.Environ(), plainEnv+"="+string(text))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()         // by the kill
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(line), cmd.Process.Pid
}

// A shot is the result of loading one address for a while.
type shot struct {
	perSecond float64
	p50, p99  time.Duration
	cpu       time.Duration // per request
}

// fire sends one request again and again over some connections.
func fire(t *testing.T, address, path, token string, z size, cpu func() time.Duration) shot {
	t.Helper()
	request := fmt.Appendf(nil, "GET %s HTTP/1.1\r\nHost: %s\r\n", path, strings.Replace(address, "127.0.0.1", "localhost", 1))
	if token != "" {
		request = fmt.Appendf(request, "Authorization: Bearer %s\r\n", token)
	}
	request = append(request, "\r\n"...)
	ctx, cancel := context.WithTimeout(t.Context(), z.each)
	defer cancel()
	var mu sync.Mutex
	var times []time.Duration
	before, began := cpu(), time.Now()
	each(t, z.conns, func(int) error {
		own, err := shoot(ctx, address, request)
		mu.Lock()
		defer mu.Unlock()
		times = append(times, own...)
		return err
	})
	took, used := time.Since(began), cpu()-before
	if len(times) == 0 {
		t.Fatalf("no request to %s was answered in %s", path, z.each)
	}
	slices.Sort(times)
	return shot{
		perSecond: float64(len(times)) / took.Seconds(), p50: quantile(times, 0.5), p99: quantile(times, 0.99),
		cpu: used / time.Duration(len(times)),
	}
}

// shoot is one connection.
func shoot(ctx context.Context, address string, request []byte) ([]time.Duration, error) {
	conn, err := net.DialTimeout("tcp", address, 10*time.Second)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	in := bufio.NewReaderSize(conn, 64<<10)
	var times []time.Duration
	for ctx.Err() == nil {
		began := time.Now()
		if err := conn.SetDeadline(began.Add(time.Minute)); err != nil {
			return nil, err
		}
		if _, err := conn.Write(request); err != nil {
			return nil, err
		}
		if err := readAnswer(in); err != nil {
			return nil, err
		}
		times = append(times, time.Since(began))
	}
	return times, nil
}

// readAnswer reads one answer with as little work as it can.
func readAnswer(in *bufio.Reader) error {
	length, chunked := int64(-1), false
	for first := true; ; first = false {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return err
		}
		text := strings.TrimSpace(string(line))
		if text == "" {
			break
		}
		if first {
			if !strings.HasPrefix(text, "HTTP/1.1 200") {
				return errors.New(text)
			}
			continue
		}
		name, value, _ := strings.Cut(text, ":")
		switch strings.ToLower(name) {
		case "content-length":
			if length, err = strconv.ParseInt(strings.TrimSpace(value), 10, 64); err != nil {
				return err
			}
		case "transfer-encoding":
			chunked = true
		}
	}
	if !chunked {
		_, err := io.CopyN(io.Discard, in, max(length, 0))
		return err
	}
	if _, err := io.Copy(io.Discard, httputil.NewChunkedReader(in)); err != nil {
		return err
	}
	_, err := in.ReadSlice('\n') // of the empty trailer
	return err
}

// addOffers fills the catalogue.
func addOffers(t *testing.T, database string, n int) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), database)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	for _, sql := range []string{
		fmt.Sprintf(`insert into offer (adapter, provider, cloud_id, gpu_type, gpu_count, socket, country, data_center_id, is_spot, security,
			gpu_memory_gb, memory_gb, vcpu, image, disk_gb, disk_price_usd_micro_per_hour, disk_included, upstream_usd_micro_per_hour, seen_at)
		select adapter, provider, cloud_id || '-' || g, gpu_type, gpu_count, socket, country, data_center_id, is_spot, security,
			gpu_memory_gb, memory_gb, vcpu, image, disk_gb, disk_price_usd_micro_per_hour, disk_included, upstream_usd_micro_per_hour + g, seen_at
		from (select * from offer) o, generate_series(1, %d) g
		limit %d - (select count(*) from offer)`, n, n),
		`update offer_version set version = version + 1`,
	} {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
}

// catalogue returns the body of GET /resources once it has n offers.
func (s *server) catalogue(n int) []byte {
	s.t.Helper()
	var body string
	err := until(s.t.Context(), "the catalogue to grow", 200*time.Millisecond, func() (bool, error) {
		var err error
		_, body, err = send(s.t.Context(), http.DefaultClient, http.MethodGet, s.url+"/api/resources", "", "")
		return strings.Count(body, `"cloudId"`) >= n, err
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return []byte(body)
}

// profiled makes the server tell profiles, if HOMEPORT_BENCH_PROFILE names a
// folder for them, and returns what takes one of the CPU while fn runs.
func (s *server) profiled() func(name string, fn func()) {
	dir := os.Getenv("HOMEPORT_BENCH_PROFILE")
	if dir == "" {
		return func(string, func()) {}
	}
	_, port, _ := strings.Cut(s.addr, ":")
	n, err := strconv.Atoi(port)
	if err != nil {
		s.t.Fatal(err)
	}
	metrics := fmt.Sprintf("127.0.0.1:%d", n-20000) // out of the range that is drawn from
	s.env = append(s.env, "HOMEPORT_METRICS_ADDR="+metrics)
	return func(name string, fn func()) {
		got := make(chan error, 1)
		go func() {
			_, text, err := send(s.t.Context(), http.DefaultClient, http.MethodGet, "http://"+metrics+"/debug/pprof/profile?seconds=3", "", "")
			got <- errors.Join(err, os.WriteFile(dir+"/"+name+".pprof", []byte(text), 0o600))
		}()
		fn()
		if err := <-got; err != nil {
			s.t.Error(err)
		}
	}
}

// TestHTTP measures what the API adds to a minimal handler on the same database.
func TestHTTP(t *testing.T) {
	z := measured(t)
	at := load()
	s := newServer(t)
	profile := s.profiled()
	s.start()
	u := s.crowd(1, "50")[0]
	offers, err := u.offers(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := u.rent(t.Context(), offers[len(offers)-1], 50*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	addOffers(t, s.database(), z.offers)
	body := s.catalogue(z.offers)
	file := t.TempDir() + "/offers.json"
	if err := os.WriteFile(file, body, 0o600); err != nil {
		t.Fatal(err)
	}
	plain, pid := startPlain(t, plainOrder{Database: s.database(), Team: u.TeamID, Offers: file})

	tp := topic{Title: fmt.Sprintf("The API at %d connections", z.conns)}
	for _, c := range []struct {
		name, path, token, plain string
		slow                     bool // the bar on p99 is for what asks the database
	}{
		{"GET /api/pods", "/api/pods?team_id=" + u.TeamID, u.Token, "/pods", true},
		{"GET /api/wallet/balance", "/api/wallet/balance?team_id=" + u.TeamID, u.Token, "/balance", true},
		{fmt.Sprintf("GET /api/resources, %d offers, %d kB", z.offers, len(body)/1000), "/api/resources", "", "/resources", false},
	} {
		rate, late := ratios{limit: 0.5, atLeast: true}, ratios{limit: 2}
		var ours, theirs shot
		profile(strings.ReplaceAll(strings.Trim(c.plain, "/"), "/", "-"), func() { fire(t, s.addr, c.path, c.token, z, func() time.Duration { return 0 }) })
		for range z.rounds {
			ours = fire(t, s.addr, c.path, c.token, z, func() time.Duration { return s.cpu(s.cmd.Process.Pid) })
			theirs = fire(t, plain, c.plain, "", z, func() time.Duration { return s.cpu(pid) })
			rate.wall = append(rate.wall, ours.perSecond/theirs.perSecond)
			rate.cpu = append(rate.cpu, theirs.cpu.Seconds()/max(ours.cpu.Seconds(), 1e-9))
			late.wall = append(late.wall, ours.p99.Seconds()/theirs.p99.Seconds())
			tp.Notes = append(tp.Notes, fmt.Sprintf("%s: %.0f per second, p50 %.1f ms, p99 %.1f ms, CPU %.0f µs; minimal %.0f per second, p50 %.1f ms, p99 %.1f ms, CPU %.0f µs.",
				c.name, ours.perSecond, ms(ours.p50), ms(ours.p99), us(ours.cpu), theirs.perSecond, ms(theirs.p50), ms(theirs.p99), us(theirs.cpu)))
		}
		beside := "one query, net/http and pgx"
		if !c.slow {
			beside = "the same bytes, constant"
		}
		tp.Rows = append(tp.Rows, rate.row(c.name+": requests per second", beside))
		if c.slow {
			tp.Rows = append(tp.Rows, late.row(c.name+": p99", beside))
		}
	}
	tp.Rows = append(tp.Rows, s.alone(u, z)...)
	tp.Notes = append(tp.Notes, "Load generator, both servers and PostgreSQL share the machine. CPU is that of server and PostgreSQL per request.")
	publish(t, "20-http", tp.under(at))
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
func us(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }
