import { useState } from 'react'
import { Button } from '@/ui/button'
import { Dialog } from '@/ui/dialog'
import { Field, TextInput } from '@/ui/field'
import { closeModal, type ModalContent, openModal } from '@/ui/modal-store'
import { alertToast, toast } from '@/ui/toast'
import { Row, Specimen } from './specimen'

const samples: readonly ModalContent[] = [
  { type: 'info', title: 'Info', message: 'Stays until it is closed.' },
  {
    type: 'loading',
    title: 'Creating',
    message: 'Comes to 95 % in eight seconds. Esc closes it.',
    duration: 8000,
  },
  { type: 'loading', title: 'Restoring', message: 'Has a progress of its own.', progress: 61 },
  { type: 'success', title: 'Created', message: 'Closes itself after 5 s, not under the pointer.' },
  { type: 'error', title: 'New Storage Volume', message: 'Error creating volume: the name is taken' },
  {
    type: 'info',
    title: 'Delete Pod',
    message: 'Your 2xA100_80GB will be deleted. /workspace is kept.',
    actions: [{ label: 'Cancel' }, { label: 'Delete', variant: 'alarm', onClick: () => toast('Deleted') }],
  },
  {
    type: 'success',
    title: 'Elsewhere',
    message: 'Leads on to another page.',
    redirectTo: '/pods',
    redirectLabel: 'To the pods',
  },
]

/** What lies above the page. */
export function Overlays() {
  const [open, setOpen] = useState<'narrow' | 'wide' | null>(null)
  return (
    <>
      <Specimen part="dialog" note="Focus inside; Esc and the backdrop close it; the focus goes back.">
        <Row of="width">
          <Button onClick={() => setOpen('narrow')}>Narrow, with a form</Button>
          <Button onClick={() => setOpen('wide')}>Wide, with a description</Button>
        </Row>
        <Dialog
          open={open !== null}
          onClose={() => setOpen(null)}
          title="New Storage Volume"
          closeLabel="Close"
          width={open ?? 'narrow'}
          {...(open === 'wide' ? { description: 'A sentence that says what this is about.' } : {})}
        >
          <Field label="Name">{(ids) => <TextInput {...ids} />}</Field>
        </Dialog>
      </Specimen>
      <Specimen part="modal" note="One at a time.">
        <Row of="types">
          {samples.map((sample) => (
            <Button key={sample.title} onClick={() => openModal(sample)}>
              {sample.title}
            </Button>
          ))}
          <Button
            onClick={() => {
              openModal({
                type: 'loading',
                title: 'Creating',
                message: 'A success follows in the same card.',
              })
              setTimeout(() => openModal({ type: 'success', title: 'Created', message: 'It did.' }), 1500)
            }}
          >
            Loading, then success
          </Button>
          <Button onClick={closeModal}>Close</Button>
        </Row>
      </Specimen>
      <Specimen part="toasts" note="At most four. A success goes by itself, a failure stays.">
        <Row of="tones">
          <Button onClick={() => toast('Command copied to clipboard!', 2000)}>Success, 2 s</Button>
          <Button onClick={() => toast(`Invitation ${new Date().toISOString()} sent.`)}>Success, 5 s</Button>
          <Button onClick={() => alertToast('Error deleting pod: the pod is already being deleted')}>
            Failure
          </Button>
        </Row>
      </Specimen>
    </>
  )
}
