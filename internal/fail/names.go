package fail

// Names is the registry: every failpoint of the product, in the order of the
// main job, automatic top-ups after its payment, then the operator's commands. A test of internal/arch holds
// it equal to the calls of Point, and the failpoint test kills the server at
// each one.
var Names = []string{
	"payment.checkout.committed", // the order exists, the payer was not sent on yet
	"payment.event.claimed",      // inside the transaction that credits
	"payment.event.committed",    // credited, the processor was not answered yet
	"testpay.paid.committed",     // the payer paid, the event is not delivered yet
	"payment.auto.intent",        // an automatic top-up is due, nobody was asked for it yet
	"payment.auto.asked",         // it is written down that the card is asked, nobody was yet
	"testpay.charged.committed",  // the card paid, the caller does not know
	"payment.auto.called",        // the card paid, nothing of it is recorded
	"pod.create.committed",       // the pod is pending, its job not seen yet
	"pod.launch.intent",          // the name is committed, the provider not called yet
	"pod.launch.called",          // the machine may exist, nothing of it is recorded
	"pod.launch.recorded",        // the machine is recorded
	"pod.ready.committed",        // the meter runs, the agent does not know yet
	"pod.delete.committed",       // deleting, the agent does not know yet
	"pod.final.committed",        // the last sync is in, the volume is not free yet
	"pod.terminate.intent",       // terminate is due, the provider not called yet
	"pod.terminate.called",       // the machine is gone, nothing of it is recorded
	"volume.commit.staged",       // the snapshot object is staged, the head not moved
	"volume.commit.committed",    // the head moved, the snapshot is not published yet
	"volume.commit.published",    // published, the agent was not answered yet
	"wallet.settle.inserted",     // inside the settlement's transaction
	"wallet.settle.committed",    // settled, the sweep goes on
	"meter.exhaust.committed",    // meters ended, pods are switching off
	"keys.next.written",          // a new master key is in the file, the database does not know it
	"keys.next.committed",        // the database knows it, it seals nothing yet
	"keys.current.committed",     // it is current, nothing is sealed again yet
	"keys.batch.committed",       // some values are sealed again
	"keys.retired.committed",     // a key is retired, its file is as it was
	"keys.retired.kept",          // it lies in a file of its own, and in the key file as well
}
