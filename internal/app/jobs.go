package app

import (
	"context"

	"homeport.dev/homeport/internal/auth"
	"homeport.dev/homeport/internal/notice"
	"homeport.dev/homeport/internal/offer"
	"homeport.dev/homeport/internal/payment"
	"homeport.dev/homeport/internal/payment/testpay"
	"homeport.dev/homeport/internal/pod"
	"homeport.dev/homeport/internal/queue"
	"homeport.dev/homeport/internal/team"
)

// handleJobs says who does each kind of job.
func (a *App) handleJobs() {
	queue.Handle(a.queue, func(ctx context.Context, j auth.SendLinkJob) error { return a.auth.SendLink(ctx, j) })
	queue.Handle(a.queue, func(ctx context.Context, j team.SendInvitationJob) error { return a.teams.SendInvitation(ctx, j) })
	queue.Handle(a.queue, func(ctx context.Context, j pod.ReconcileJob) error { return a.pods.Reconcile(ctx, j.PodID) })
	queue.Handle(a.queue, func(ctx context.Context, j pod.KeylessJob) error { return a.pods.SendKeyless(ctx, j) })
	queue.Handle(a.queue, func(ctx context.Context, j pod.LostJob) error { return a.pods.SendLost(ctx, j) })
	queue.Handle(a.queue, func(ctx context.Context, j offer.BrokenJob) error { return a.offers.SendBroken(ctx, j) })
	queue.Handle(a.queue, func(ctx context.Context, j notice.LetterJob) error { return a.notices.SendLetter(ctx, j) })
	queue.Handle(a.queue, func(ctx context.Context, j pod.TerminateJob) error { return a.pods.Terminate(ctx, j.InstanceID) })
	queue.Handle(a.queue, func(ctx context.Context, j payment.SubscriptionJob) error { return a.payments.ReadSubscription(ctx, j) })
	queue.Handle(a.queue, func(ctx context.Context, j payment.ChargeJob) error { return a.payments.Charge(ctx, j) })
	queue.Handle(a.queue, func(ctx context.Context, j payment.CardJob) error { return a.payments.FollowCard(ctx, j) })
	queue.Handle(a.queue, func(ctx context.Context, _ payment.ReconcileJob) error {
		_, err := a.payments.Reconcile(ctx)
		return err
	})
	queue.Handle(a.queue, func(ctx context.Context, j testpay.DeliverJob) error {
		if a.testpay == nil { // its events are of a time before the key
			return nil
		}
		return a.testpay.Deliver(ctx, j)
	})
}
