# Everything a developer or an operator runs. Each target sets up what it needs.
SHELL := /bin/bash
.DEFAULT_GOAL := help
WEB_SOURCES := $(shell find web/src web/public web/scripts web/index.html web/*.ts web/package-lock.json -type f 2>/dev/null)
WEB_BUILT := web/dist/index.html
BENCH ?= full
SIM ?=

.PHONY: help run dev build agents web gen lint test race sim bench e2e screenshots ci clean

help: ## list the targets
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

run: build ## build all and serve on http://localhost:8080
	@exec bin/homeport serve

dev: build ## serve the API on :8080 and the page with live reload on :5173
	@scripts/dev

build: $(WEB_BUILT) ## build bin/homeport and bin/homeport-agent
	@CGO_ENABLED=0 go build -trimpath -ldflags='-s -w' -o bin/ ./cmd/homeport ./cmd/homeport-agent

agents: ## build the agents that machines of real clouds fetch
	@for arch in amd64 arm64; do CGO_ENABLED=0 GOOS=linux GOARCH=$$arch go build -trimpath -ldflags='-s -w' -o bin/homeport-agent-linux-$$arch ./cmd/homeport-agent || exit 1; done

web: $(WEB_BUILT) ## build the page

web/node_modules/.package-lock.json: web/package-lock.json
	@scripts/need go node npm
	@cd web && npm ci --no-audit --no-fund --loglevel=error
	@touch $@

$(WEB_BUILT): $(WEB_SOURCES) web/node_modules/.package-lock.json
	@cd web && npm run --silent build
	@touch $@

gen: ## regenerate openapi.json, the page's types and docs/codes.md
	@scripts/gen

lint: $(WEB_BUILT) ## format, vet and lint Go and the page
	@scripts/lint

test: build ## every test: Go, web, browser
	@scripts/test

race: ## the packages of money and data under the race detector
	@go test -race -count=1 ./internal/wallet/... ./internal/pod/... ./internal/volume/... ./internal/snapshot/...

sim: build ## the long runs: a million transfers, 200 crashes, 10,000 histories
	@scripts/sim $(SIM)

bench: build ## measure every bar beside its peer; BENCH=smoke for a quick run
	@scripts/bench $(BENCH)

e2e: build ## the browser tests alone
	@scripts/need-tools && cd web && npx playwright test

screenshots: build ## every screen at both widths into docs/screenshots
	@scripts/need-tools && cd web && npx playwright test -c playwright.screenshots.config.ts

ci: ## what CI runs
	@.ci/run

clean: ## forget what was built
	@rm -rf bin web/dist/assets web/dist/*.html tmp
