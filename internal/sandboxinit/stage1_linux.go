package sandboxinit

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Inherited files of the stages; the listening sockets follow the last one.
const (
	fdReport = 3 // write end: the stage's report
	fdLock   = 4 // stage 1 only: the machine's lock, held while it is being built
)

// patience bounds stage 1: what takes longer will not come up.
const patience = 60 * time.Second

// hold is the argument of the helper that keeps a user namespace open until
// its standard input ends.
const hold = "hold"

const (
	cloneRoot     = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWCGROUP | unix.CLONE_NEWNET
	cloneRootless = cloneRoot &^ unix.CLONE_NEWUSER
)

// Stage1 runs as `homeport-agent stage1` in a mount namespace of its own, as
// root or as the root of a user namespace of one uid. It builds the pod's file
// tree, starts stage 2 in its namespaces, records it, reports once, and
// returns. As root it makes the id-mapped mounts that only root can make.
func Stage1() error {
	if len(os.Args) > 2 && os.Args[2] == hold {
		_, err := io.Copy(io.Discard, os.Stdin)
		return err
	}
	out := os.NewFile(fdReport, "report")
	err := stage1()
	send(out, err)
	return err
}

func stage1() error {
	p, err := readPlan(os.Stdin)
	if err != nil {
		return err
	}
	unix.CloseOnExec(fdReport)
	unix.CloseOnExec(fdLock)
	files := inherited(fdLock+1, p.SSH)
	time.AfterFunc(patience, func() { os.Exit(1) })
	b := birth{Boot: bootID(), Cgroups: join(&p), Limits: p.Enforced}
	if err := writeFile(filepath.Join(p.Dir, birthFile), b); err != nil {
		return err
	}
	if err := build(p); err != nil {
		return err
	}
	return spawn(p, files, b)
}

// inherited wraps n files from first on, and keeps them from every child that
// is not given them.
func inherited(first, n int) []*os.File {
	var files []*os.File
	for fd := first; fd < first+n; fd++ {
		unix.CloseOnExec(fd)
		files = append(files, os.NewFile(uintptr(fd), "ssh"))
	}
	return files
}

// spawn starts PID 1 of the pod from the pod's own copy of this binary. PID 1
// waits for its plan, which it gets only after its birth was recorded: when
// this process dies before, the pipe ends and PID 1 with it.
func spawn(p plan, files []*os.File, b birth) error {
	in, feed, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("pipe: %w", err)
	}
	done, up, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("pipe: %w", err)
	}
	cmd := exec.Command("."+AgentPath, "stage2")
	cmd.Args[0] = "homeport-agent" // what ps shows in the pod
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, os.Stdout, os.Stderr
	cmd.ExtraFiles = append([]*os.File{up}, files...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Cloneflags: cloneRootless}
	if !p.Rootless {
		ids := idMap(p.UIDBase)
		cmd.SysProcAttr = &syscall.SysProcAttr{
			Setsid: true, Cloneflags: cloneRoot, UidMappings: ids, GidMappings: ids,
			GidMappingsEnableSetgroups: true, Credential: &syscall.Credential{},
		}
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start PID 1: %w", err)
	}
	_, _ = in.Close(), up.Close()
	b.PID = cmd.Process.Pid
	if b.Start, err = startTime(b.PID); err == nil {
		err = writeFile(filepath.Join(p.Dir, birthFile), b)
	}
	if err == nil {
		err = json.NewEncoder(feed).Encode(p)
	}
	_ = feed.Close()
	if err == nil {
		err = awaitReport(done)
	}
	if err != nil || p.Trial {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	return err
}

// awaitReport reads a stage's report; its end without one is a failure.
func awaitReport(r io.Reader) error {
	var rep report
	if err := json.NewDecoder(r).Decode(&rep); err != nil {
		return fmt.Errorf("PID 1 ended before it was set up: %w", err)
	}
	if rep.Error != "" {
		return errors.New(rep.Error)
	}
	return nil
}

// idMap gives the pod 65,536 ids of its own.
func idMap(base int) []syscall.SysProcIDMap {
	return []syscall.SysProcIDMap{{ContainerID: 0, HostID: base, Size: 65536}}
}

// bootID names the host's present boot.
func bootID() string {
	b, _ := os.ReadFile("/proc/sys/kernel/random/boot_id") // "" compares unequal to every recorded one
	return strings.TrimSpace(string(b))
}

// startTime is when a process began, in the kernel's ticks: with the pid it
// names a process for good.
func startTime(pid int) (string, error) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return "", fmt.Errorf("start time of PID 1: %w", err)
	}
	_, after, _ := strings.Cut(string(b[strings.LastIndexByte(string(b), ')'):]), " ")
	f := strings.Fields(after)
	if len(f) < 20 {
		return "", fmt.Errorf("start time of PID 1: short stat")
	}
	return f[19], nil
}
