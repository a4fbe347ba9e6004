package sandboxinit

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// family is the folder of all pods below a controller's root.
const family = "homeport"

// join puts this process, and with it the pod, into control groups of its own,
// version 2 where the host has the controller there, else version 1, else
// none. It fills in what holds, and returns the folders made.
func join(p *plan) []string {
	p.NoPids = true
	var made, held []string
	for _, c := range []struct{ controller, text string }{
		{"pids", fmt.Sprintf("at most %d processes", p.Pids)},
		{"memory", fmt.Sprintf("at most %.1f GB of this host's memory", float64(p.Memory)/1e9)},
		{"cpu", "a fair share of this host's processors"},
	} {
		dir := enterGroup(c.controller, p, made)
		if dir == "" {
			continue
		}
		if !slices.Contains(made, dir) {
			made = append(made, dir)
		}
		held = append(held, c.text)
		p.NoPids = p.NoPids && c.controller != "pids"
	}
	if p.NoPids {
		held = append(held, fmt.Sprintf("at most %d processes (by resource limit)", p.Pids))
	}
	p.Enforced = "Limits: " + strings.Join(held, "; ") + "."
	if len(made) == 0 {
		p.Enforced += " Memory and processor limits are not enforced on this host."
	}
	return made
}

// enterGroup makes and enters the pod's group of one controller; "" = not here.
func enterGroup(controller string, p *plan, made []string) string {
	v2 := true
	parent := parentV2(controller, p.Rootless)
	if parent == "" {
		v2 = false
		if parent = parentV1(controller, p.Rootless); parent == "" {
			return ""
		}
	}
	dir := filepath.Join(parent, p.Cgroup)
	if err := os.Mkdir(dir, 0o755); err != nil && !os.IsExist(err) {
		return ""
	}
	for _, s := range settings(controller, v2, p) {
		if os.WriteFile(filepath.Join(dir, s.file), []byte(s.value), 0o644) != nil {
			leave(dir, made)
			return ""
		}
	}
	if slices.Contains(made, dir) {
		return dir
	}
	if os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(os.Getpid())), 0o644) != nil {
		leave(dir, made)
		return ""
	}
	return dir
}

func leave(dir string, made []string) {
	if !slices.Contains(made, dir) {
		_ = os.Remove(dir) // empty: nothing entered it
	}
}

type setting struct{ file, value string }

func settings(controller string, v2 bool, p *plan) []setting {
	switch {
	case controller == "pids":
		return []setting{{"pids.max", strconv.Itoa(p.Pids)}}
	case controller == "memory" && v2:
		return []setting{{"memory.max", strconv.FormatInt(p.Memory, 10)}}
	case controller == "memory":
		return []setting{{"memory.limit_in_bytes", strconv.FormatInt(p.Memory, 10)}}
	case v2:
		return []setting{{"cpu.weight", strconv.Itoa(p.Weight)}}
	}
	return []setting{{"cpu.shares", strconv.Itoa(max(2, p.Weight*1024/100))}}
}

// parentV2 returns a version 2 folder whose children have the controller: the
// product's own as root, the folder this process was delegated otherwise.
func parentV2(controller string, rootless bool) string {
	root := ""
	for _, m := range mounts() {
		if m.kind == "cgroup2" {
			root = m.at
		}
	}
	if root == "" {
		return ""
	}
	if rootless {
		own := ownGroup("")
		if own == "" || own == "/" {
			return ""
		}
		parent := filepath.Join(root, path.Dir(own))
		if !listed(filepath.Join(parent, "cgroup.subtree_control"), controller) || unix.Access(parent, unix.W_OK) != nil {
			return ""
		}
		return parent
	}
	if !listed(filepath.Join(root, "cgroup.controllers"), controller) {
		return ""
	}
	dir := filepath.Join(root, family)
	_ = os.Mkdir(dir, 0o755) // may be there; what counts is read below
	for _, d := range []string{root, dir} {
		_ = os.WriteFile(filepath.Join(d, "cgroup.subtree_control"), []byte("+"+controller), 0o644)
	}
	if !listed(filepath.Join(dir, "cgroup.subtree_control"), controller) {
		return ""
	}
	return dir
}

// parentV1 returns the product's folder of a version 1 controller; only root has one.
func parentV1(controller string, rootless bool) string {
	if rootless {
		return ""
	}
	for _, m := range mounts() {
		if m.kind == "cgroup" && slices.Contains(strings.Split(m.options, ","), controller) {
			dir := filepath.Join(m.at, family)
			if err := os.Mkdir(dir, 0o755); err == nil || os.IsExist(err) {
				return dir
			}
		}
	}
	return ""
}

type mounted struct{ at, kind, options string }

// mounts lists what is mounted here.
func mounts() []mounted {
	b, _ := os.ReadFile("/proc/self/mounts") // unreadable: no control groups, which is said
	var list []mounted
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) > 3 {
			list = append(list, mounted{at: f[1], kind: f[2], options: f[3]})
		}
	}
	return list
}

// ownGroup is this process's group of a version 1 controller, or of version 2 for "".
func ownGroup(controller string) string {
	b, _ := os.ReadFile("/proc/self/cgroup")
	for line := range strings.Lines(string(b)) {
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(f) == 3 && f[1] == controller {
			return f[2]
		}
	}
	return ""
}

// listed says whether a controllers file names one.
func listed(file, controller string) bool {
	b, err := os.ReadFile(file)
	return err == nil && slices.Contains(strings.Fields(string(b)), controller)
}
