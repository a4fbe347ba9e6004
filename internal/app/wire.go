package app

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"homeport.dev/homeport/internal/agentedge"
	"homeport.dev/homeport/internal/auth"
	"homeport.dev/homeport/internal/dns"
	"homeport.dev/homeport/internal/idem"
	"homeport.dev/homeport/internal/interest"
	"homeport.dev/homeport/internal/job"
	"homeport.dev/homeport/internal/mail"
	"homeport.dev/homeport/internal/mail/mailbox"
	"homeport.dev/homeport/internal/masterkey"
	"homeport.dev/homeport/internal/meter"
	"homeport.dev/homeport/internal/notice"
	"homeport.dev/homeport/internal/offer"
	"homeport.dev/homeport/internal/operator"
	"homeport.dev/homeport/internal/payment"
	"homeport.dev/homeport/internal/payment/stripe"
	"homeport.dev/homeport/internal/payment/testpay"
	"homeport.dev/homeport/internal/pg"
	"homeport.dev/homeport/internal/pod"
	"homeport.dev/homeport/internal/provider"
	"homeport.dev/homeport/internal/provider/sandbox"
	"homeport.dev/homeport/internal/queue"
	"homeport.dev/homeport/internal/sshkey"
	"homeport.dev/homeport/internal/statement"
	"homeport.dev/homeport/internal/team"
	"homeport.dev/homeport/internal/volume"
	"homeport.dev/homeport/internal/wallet"
)

// wire makes every service, in the order of their dependencies.
func (a *App) wire(ctx context.Context) error {
	var err error
	if a.ring, err = masterkey.Open(ctx, a.masterKeys()); err != nil {
		return err
	}
	a.hub = pg.NewHub(a.pool, a.logger)
	if a.queue, err = queue.New(a.pool, a.logger); err != nil {
		return err
	}
	if err := a.wireMail(); err != nil {
		return err
	}
	if err := a.wirePeople(); err != nil {
		return err
	}
	if err := a.wirePods(ctx); err != nil {
		return err
	}
	if err := a.wireMoney(ctx); err != nil {
		return err
	}
	a.handleJobs()
	return nil
}

func (a *App) wireMail() error {
	if a.config.SMTPURL == "" {
		a.mailbox = mailbox.New(a.pool, a.clock)
		a.sender = a.mailbox
		return nil
	}
	var err error
	a.sender, err = mail.NewSMTP(a.config.SMTPURL, a.config.MailFrom)
	return err
}

// wirePeople makes teams, their wallets and sign-in.
func (a *App) wirePeople() error {
	a.wallet = wallet.New(wallet.Deps{Pool: a.pool, Clock: a.clock, Logger: a.logger})
	a.teams = team.New(team.Deps{
		Pool: a.pool, Clock: a.clock, Jobs: a.queue, Mail: a.sender, Logger: a.logger,
		Hooks: team.Hooks{
			OpenWallet: a.wallet.OpenTx,
			FindUser: func(ctx context.Context, tx pgx.Tx, email string) (team.Person, bool, error) {
				user, found, err := a.auth.FindUserTx(ctx, tx, email)
				return team.Person{ID: user.ID, Email: user.Email}, found, err
			},
			Emails: func(ctx context.Context, tx pgx.Tx, ids []uuid.UUID) (map[uuid.UUID]string, error) {
				return a.auth.EmailsTx(ctx, tx, ids)
			},
			InviteLink: func(ctx context.Context, l team.InviteLink) (string, error) {
				return a.auth.InviteLink(ctx, auth.Invite{InvitationID: l.InvitationID, Email: l.Email, For: l.For})
			},
			BlockDelete: func(ctx context.Context, tx pgx.Tx, teamID uuid.UUID, _ time.Time) error {
				return a.pods.BlockEndTx(ctx, tx, teamID)
			},
			OnDelete:      a.endTeamTx,
			SetSpendLimit: a.wallet.SetLimitTx,
			OnPlan:        a.followPlanTx,
			OnUnpaid: func(ctx context.Context, tx pgx.Tx, d team.Dun) error {
				return a.notices.PostTx(ctx, tx, notice.OfDun(d))
			},
			OnLeave: func(ctx context.Context, tx pgx.Tx, teamID, userID uuid.UUID, now time.Time) error {
				return errors.Join(a.pods.LeaveTx(ctx, tx, teamID, userID, now), a.payments.LeaveTx(ctx, tx, teamID, userID))
			},
			OnDemote: func(ctx context.Context, tx pgx.Tx, teamID, userID uuid.UUID) error {
				return a.payments.DemoteTx(ctx, tx, teamID, userID)
			},
		},
	})
	a.interest = interest.New(interest.Deps{Pool: a.pool, Clock: a.clock})
	a.keys = sshkey.New(sshkey.Deps{
		Pool: a.pool, Clock: a.clock, Logger: a.logger,
		OnDeleteTx: func(ctx context.Context, tx pgx.Tx, keyID uuid.UUID) error { return a.pods.KeyGoneTx(ctx, tx, keyID) },
	})
	var err error
	a.auth, err = auth.New(auth.Deps{
		Pool: a.pool, Clock: a.clock, Queue: a.queue, Box: a.ring.Box(), Logger: a.logger, Hub: a.hub, Mail: a.sender,
		PublicURL: a.config.PublicURL, SignUp: auth.SignUp(a.config.Signup),
		Invited: func(ctx context.Context, tx pgx.Tx, email string) (bool, error) {
			return a.teams.IsInvitedTx(ctx, tx, email)
		},
		InvitationWaits: a.teams.InvitationWaitsTx,
		OnSignIn: func(ctx context.Context, tx pgx.Tx, user uuid.UUID, email string) error {
			return a.teams.AcceptTx(ctx, tx, team.Person{ID: user, Email: email})
		},
	})
	return err
}

// wirePods makes everything from the clouds to the pods.
func (a *App) wirePods(ctx context.Context) error {
	store, err := a.openStore(ctx)
	if err != nil {
		return err
	}
	agent, err := a.agentBinary()
	if err != nil {
		return err
	}
	sells, rents, err := a.wireClouds(agent)
	if err != nil {
		return err
	}
	markup, err := a.config.markup()
	if err != nil {
		return err
	}
	breaker, err := a.config.breaker()
	if err != nil {
		return err
	}
	a.offers, err = offer.New(offer.Deps{
		Pool: a.pool, Clock: a.clock, Logger: a.logger, Adapters: sells, Every: a.offersEvery(), MarkupPermille: markup,
		Breaker: breaker, Operator: a.config.OperatorEmail, PublicURL: a.config.PublicURL, Jobs: a.queue, Mail: a.sender,
	})
	if err != nil {
		return err
	}
	if err := a.wireVolumes(store); err != nil {
		return err
	}
	runway, err := time.ParseDuration(a.config.MinRunway)
	if err != nil {
		return err
	}
	preflight, err := a.config.preflight()
	if err != nil {
		return err
	}
	first, last, err := a.config.sshPorts()
	if err != nil {
		return err
	}
	a.pods = pod.New(pod.Deps{
		Pool: a.pool, Clock: a.clock, Jobs: a.queue, Box: a.ring.Box(), Logger: a.logger, Wallet: a.wallet, Volumes: a.volumes,
		Offers: a.offers, Keys: a.keys, Teams: a.teams, Mail: a.sender, Adapters: rents, DNS: a.names(ctx), Host: a.config.PodHost,
		AgentURL: a.config.PublicURL, Limits: pod.Limits{MinRunway: runway, PortFirst: first, PortLast: last, Preflight: preflight}, Listen: a.hub.Subscribe, Notify: pg.NotifyTx,
	})
	a.agents = agentedge.New(a.pods, a.objects, a.storeAddress(), a.logger)
	return nil
}

// wireVolumes makes the volumes, whose objects are in store.
func (a *App) wireVolumes(store objectStore) error {
	keep, err := volume.ParseRetention(a.config.KeepVersions)
	if err != nil {
		return err
	}
	garbage, err := volume.ParseKeepGarbage(a.config.KeepGarbage)
	if err != nil {
		return err
	}
	a.volumes = volume.New(volume.Deps{
		Pool: a.pool, Clock: a.clock, Jobs: a.queue, Logger: a.logger, Box: a.ring.Box(), Store: store, Signer: store, Wallet: a.wallet,
		Retention: keep, KeepGarbage: garbage, Unchecked: a.unchecked,
		OnCommitTx: func(ctx context.Context, tx pgx.Tx, volumeID, podID uuid.UUID, final bool, at time.Time) error {
			return a.pods.NoteCommitTx(ctx, tx, volumeID, podID, final, at)
		},
		RestoredAt: func(ctx context.Context) (*time.Time, error) { return a.pods.RestoredAt(ctx) },
		OnPurgeTx:  recordPurge,
	})
	return nil
}

// wireClouds makes the adapters: those whose offers are for sale, and all whose
// machines there may be.
func (a *App) wireClouds(agent string) (sells, rents map[string]provider.Adapter, err error) {
	a.sandbox, err = sandbox.New(sandbox.Config{
		Dir: filepath.Join(a.config.StateDir, "sandbox"), AgentBinary: agent, Agent: a.agentHandler(), Clock: a.clock,
		Logger: a.logger, Market: market(a.config.SandboxMarket),
	})
	if err != nil {
		return nil, nil, err
	}
	rents, err = a.adapters()
	if err != nil {
		return nil, nil, err
	}
	sells = maps.Clone(rents)
	maps.Copy(rents, a.sandbox.Clouds())
	if a.config.sandboxSells() {
		maps.Copy(sells, a.sandbox.Clouds())
	}
	return sells, rents, nil
}

func market(name string) sandbox.Market {
	if name == "walk" {
		return sandbox.Walk
	}
	return sandbox.Constant
}

// names publishes pod names at the configured name server, on one machine in the
// hosts file where nothing else resolves them. A name server that does not take
// our updates is no reason not to start: pods that run need none.
func (a *App) names(ctx context.Context) dns.Names {
	if server, err := a.config.nameServer(a.clock); err == nil && server != nil {
		if err := server.Check(ctx); err != nil {
			a.logger.ErrorContext(ctx, "no pod can become ready: its name cannot be published", "err", err)
		}
		return server
	}
	host := a.config.PodHost
	if !loopback(host) || os.Geteuid() != 0 || dns.Resolves(ctx, host) {
		return nil
	}
	return &dns.HostsFile{Path: "/etc/hosts"}
}

func (a *App) agentBinary() (string, error) {
	if a.config.AgentBinary != "" {
		return a.config.AgentBinary, nil
	}
	exe, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find the pod agent: %w", err)
	}
	return filepath.Join(filepath.Dir(exe), "homeport-agent"), nil
}

// wireMoney makes payments and the meters' sweeps.
func (a *App) wireMoney(ctx context.Context) error {
	processor, err := a.processor(ctx)
	if err != nil {
		return err
	}
	a.payments = payment.New(payment.Deps{
		Pool: a.pool, Clock: a.clock, Logger: a.logger, Wallet: a.wallet, Teams: a.teams, Jobs: a.queue,
		Processor: processor, PublicURL: a.config.PublicURL,
		OnAutoTopUp: func(ctx context.Context, tx pgx.Tx, n payment.News) error {
			return a.notices.PostTx(ctx, tx, topUpNotice(n))
		},
		RestoredAt: a.pods.RestoredAt,
		OnEnding:   a.tellEndingTx,
	})
	a.notices = notice.New(notice.Deps{
		Pool: a.pool, Clock: a.clock, Logger: a.logger, Jobs: a.queue, Mail: a.sender, Teams: a.teams, Wallet: a.wallet,
		PublicURL: a.config.PublicURL, TopUpNews: a.payments.NewsKey,
	})
	a.meter = meter.New(meter.Deps{
		Pool: a.pool, Clock: a.clock, Logger: a.logger, Wallet: a.wallet, Pods: a.pods, Volumes: a.volumes, Notices: a.notices,
		OnLow: a.payments.DueTx,
	})
	a.statements = statement.New(statement.Deps{
		Pool: a.pool, Clock: a.clock, Wallet: a.wallet, Pods: a.pods, Volumes: a.volumes, Teams: a.teams,
		Emails: a.auth.EmailsTx, Payers: a.payments.PayersTx, Receipts: a.payments.Receipts,
	})
	return a.wireOperator()
}

// wireOperator makes the view of those who run this Homeport.
func (a *App) wireOperator() error {
	emails, err := operator.ParseEmails(a.config.Operators)
	if err != nil {
		return err
	}
	a.operator = operator.New(operator.Deps{
		Emails: emails, Clock: a.clock, Offers: a.offers, Pods: a.pods, Wallet: a.wallet, Volumes: a.volumes, Payments: a.payments,
		FailingJobs: func(ctx context.Context, now time.Time) ([]job.Failing, error) {
			return queue.Failing(ctx, a.pool, now)
		},
	})
	return nil
}

// processor is who collects money: Stripe where there is a key. The test
// checkout makes credit of nothing, so it is never there beside one, nor where
// others than this machine's people come: there, payments are not set up.
func (a *App) processor(ctx context.Context) (payment.Processor, error) {
	c := a.config
	if c.StripeKey != "" {
		return stripe.New(stripe.Config{
			SecretKey: c.StripeKey, WebhookSecret: c.StripeWebhook, APIBase: c.StripeBase, AutomaticTax: c.StripeTax == "automatic",
		}), nil
	}
	if !c.doors() {
		return nil, nil
	}
	var err error
	a.testpay, err = testpay.New(ctx, testpay.Deps{
		Pool: a.pool, Clock: a.clock, Jobs: a.queue, Box: a.ring.Box(), Logger: a.logger, PublicURL: c.PublicURL,
		WebhookURL: "http://" + c.Addr + "/webhooks/stripe",
	})
	if err != nil {
		return nil, err
	}
	return a.testpay, nil
}

func (a *App) forgetAnswers(ctx context.Context) error {
	return idem.Sweep(ctx, a.pool, a.clock.Wall())
}
