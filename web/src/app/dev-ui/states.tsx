import { Badge, Dot, StatusChip, type Tone } from '@/ui/badge'
import { Berths } from '@/ui/berths'
import { Button } from '@/ui/button'
import { DataList } from '@/ui/data-list'
import { EmptyState } from '@/ui/empty-state'
import { ListError } from '@/ui/list-error'
import { Meter, SpecBar } from '@/ui/meter'
import { Notice } from '@/ui/notice'
import { Skeleton, Spinner } from '@/ui/spinner'
import { Row, Specimen } from './specimen'

const tones: readonly Tone[] = ['quiet', 'beacon', 'tide', 'rig', 'ready', 'warn', 'danger']
const shares = [0, 25, 26, 50, 75, 76, 100, 140]

/** What says how things are. */
export function States() {
  return (
    <>
      <Words />
      <Figures />
      <Messages />
      <Lists />
    </>
  )
}

function Words() {
  return (
    <>
      <Specimen part="badge">
        <Row of="badge">
          {tones.map((tone) => (
            <Badge key={tone} tone={tone}>
              {tone}
            </Badge>
          ))}
        </Row>
        <Row of="status">
          {tones.map((tone) => (
            <StatusChip key={tone} tone={tone}>
              {tone}
            </StatusChip>
          ))}
        </Row>
        <Row of="status, moving">
          {tones.map((tone) => (
            <StatusChip key={tone} tone={tone} moving>
              {tone}
            </StatusChip>
          ))}
        </Row>
        <Row of="dot with a name">
          <Dot tone="ready" label="Active Pod" />
          <Dot tone="tide" label="Active Volume" />
        </Row>
      </Specimen>
      <Specimen part="spinner" note="A skeleton has the height of what follows.">
        <Row of="spinner">
          <Spinner />
          <Spinner className="size-5 text-beacon" />
        </Row>
        <Skeleton className="h-11" />
        <Skeleton className="h-40 rounded-card" />
      </Specimen>
    </>
  )
}

function Figures() {
  return (
    <>
      <Specimen part="berths" note="Everywhere a GPU count appears.">
        {[0, 1, 2, 4, 8].map((count) => (
          <Row key={count} of={String(count)}>
            <Berths count={count} label={`${count} of 8 GPUs`} />
          </Row>
        ))}
      </Specimen>
      <Specimen
        part="meter"
        note="A boundary belongs to the lower colour; the bar is clamped, the text is not."
      >
        {shares.map((share) => (
          <SpecBar key={share} label={`spec ${share}`} value={share} max={100} text={`${share} GB`} />
        ))}
        {shares.map((share) => (
          <Row key={share} of={`usage ${share}`}>
            <Meter
              className="w-full"
              palette="usage"
              label={`usage ${share}`}
              value={share}
              max={100}
              text={`${share}/100 GB`}
            />
          </Row>
        ))}
      </Specimen>
    </>
  )
}

function Messages() {
  return (
    <>
      <Specimen part="notice">
        <Notice tone="info">Your team is being switched.</Notice>
        <Notice tone="success">The credit is in your wallet.</Notice>
        <Notice tone="danger" detail="The server's own sentence stands here, quieter.">
          Failed to fetch wallet balance
        </Notice>
        <Notice tone="info" action={<Button size="small">See the plan</Button>}>
          A message with an action keeps its text beside it, also when the text is as long as this one and has
          to take a second line on a narrow screen.
        </Notice>
      </Specimen>
      <Specimen part="list-error">
        <ListError text="Failed to fetch pods" detail={undefined} busy={false} onRetry={() => undefined} />
        <ListError
          text="Failed to fetch volumes"
          detail="The server is busy. Try again in a minute."
          busy
          onRetry={() => undefined}
        />
      </Specimen>
      <Specimen part="empty-state">
        <EmptyState
          title="No pods yet"
          hint="Rent a GPU and it appears here."
          action={<Button kind="primary">Create New Instance</Button>}
        />
        <EmptyState title="Nothing but a sentence" />
      </Specimen>
    </>
  )
}

const rows = [
  { id: '70a1', name: 'datasets', price: '$0.0246/hr' },
  {
    id: '70a2',
    name: 'checkpoints-of-a-run-with-a-very-long-name-that-nobody-shortened',
    price: '$0.1000/hr',
  },
]

function Lists() {
  return (
    <Specimen part="data-list" note="A table from 768 px, cards with the same labels below.">
      <DataList
        label="Sample volumes"
        rows={rows}
        rowKey={(row) => row.id}
        columns={[
          { header: 'Name', cell: (row) => <span className="wrap-anywhere text-hi">{row.name}</span> },
          { header: 'Price per hour', cell: (row) => <span className="price">{row.price}</span> },
          {
            header: 'Actions',
            align: 'right',
            cell: () => (
              <Button kind="danger" size="small">
                Delete
              </Button>
            ),
          },
        ]}
      />
    </Specimen>
  )
}
