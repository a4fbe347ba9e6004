import { Plus, Trash2 } from 'lucide-react'
import { useState } from 'react'
import { reasonOf } from '@/api/error'
import type { SSHKey } from '@/api/types'
import { copy } from '@/copy/en'
import { useCreateAccess, useDeleteAccess, useSession, useTeam } from '@/features/session/queries'
import { Badge } from '@/ui/badge'
import { Button } from '@/ui/button'
import { type Column, DataList } from '@/ui/data-list'
import { EmptyState } from '@/ui/empty-state'
import { ListError } from '@/ui/list-error'
import { openModal } from '@/ui/modal-store'
import { Page } from '@/ui/page'
import { Skeleton } from '@/ui/spinner'
import { shownKey } from './model'
import { NewKeyDialog } from './new-key-dialog'
import { useDeleteKey, useKeys } from './queries'

/** The public keys that open the team's pods. */
export function KeysPage() {
  const { team } = useTeam()
  const signedIn = useSession().status === 'in'
  const { data, isPending, isFetching, isError, error, refetch } = useKeys()
  const access = useCreateAccess(copy.keys.signInToCreate)
  const [open, setOpen] = useState(false)
  const rows = signedIn ? data : [exampleKey]
  return (
    <Page
      title={copy.keys.title}
      refreshing={isFetching && !isPending}
      actions={
        <Button
          kind="primary"
          icon={<Plus size={15} aria-hidden="true" />}
          disabled={!access.can}
          title={access.can ? undefined : access.reason}
          onClick={() => setOpen(true)}
          className="w-full sm:w-auto"
        >
          {copy.keys.create}
        </Button>
      }
    >
      {isError ? (
        <ListError
          text={copy.keys.failed}
          detail={reasonOf(error)}
          busy={isFetching}
          onRetry={() => void refetch()}
        />
      ) : null}
      {signedIn && isPending && !isError ? <Skeleton className="h-40 rounded-card" /> : null}
      {rows?.length === 0 ? <EmptyState title={copy.keys.empty} hint={copy.keys.emptyHint} /> : null}
      {rows && rows.length > 0 ? (
        <DataList
          label={copy.keys.title}
          columns={columns}
          rows={rows}
          rowKey={({ id }) => id}
          wide="(min-width: 1240px)"
        />
      ) : null}
      {team ? <NewKeyDialog teamId={team.id} open={open} onClose={() => setOpen(false)} /> : null}
    </Page>
  )
}

/** What visitors see in place of keys of their own. Nobody holds its private half. */
const exampleKey: SSHKey = {
  id: 'c07d4f1a-52e9-4b6f-8a3d-91e6b4d2f7c0',
  team_id: '',
  name: 'laptop',
  public_key: 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIExampleExampleExampleExampleExampleEx',
  key_type: 'ssh-ed25519',
  fingerprint: '',
  created_at: '',
  created_by: '',
}

const { columns: heads } = copy.keys

const columns: readonly Column<SSHKey>[] = [
  {
    header: heads.name,
    width: 'w-[27%]',
    cell: (key) => (
      <div className="min-w-0">
        <div className="flex items-center gap-2">
          <span className="truncate font-medium text-hi" title={key.name}>
            {key.name}
          </span>
          {key === exampleKey ? <Badge>{copy.app.example}</Badge> : null}
        </div>
        <div className="num wrap-anywhere text-low text-meta">{key.id}</div>
      </div>
    ),
  },
  {
    header: heads.key,
    cell: (key) => (
      <code className="num wrap-anywhere block text-control text-mid">{shownKey(key.public_key)}</code>
    ),
  },
  {
    header: heads.type,
    width: 'w-[236px]',
    cell: (key) => (
      <Badge className="num wrap-anywhere h-auto! min-h-5 whitespace-normal!">{key.key_type}</Badge>
    ),
  },
  { header: heads.actions, width: 'w-[132px]', cell: (key) => <DeleteKey sshKey={key} /> },
]

function DeleteKey({ sshKey }: { sshKey: SSHKey }) {
  const { team } = useTeam()
  const { mutate } = useDeleteKey(team?.id ?? '')
  const access = useDeleteAccess(copy.keys.signInToDelete)(sshKey.created_by)
  const ask = () =>
    openModal({
      type: 'info',
      title: copy.keys.deleteTitle,
      message: copy.keys.deleteMessage(sshKey.name),
      actions: [
        { label: copy.app.cancel },
        {
          label: copy.app.delete,
          variant: 'alarm',
          onClick: () => mutate(sshKey),
        },
      ],
    })
  return (
    <Button
      kind="danger"
      size="small"
      icon={<Trash2 size={14} aria-hidden="true" />}
      aria-label={copy.keys.deleteLabel(sshKey.name)}
      title={access.can ? undefined : access.reason}
      disabled={!access.can}
      onClick={ask}
    >
      {copy.app.delete}
    </Button>
  )
}
