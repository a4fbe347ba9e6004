import { Plus, RefreshCw, X } from 'lucide-react'
import { useState } from 'react'
import { Button, IconButton } from '@/ui/button'
import { ButtonLink, TextLink } from '@/ui/button-link'
import { Checkbox } from '@/ui/checkbox'
import { Field, Select, Switch, TextArea, TextInput } from '@/ui/field'
import { Menu, MenuItem, MenuLine } from '@/ui/menu'
import { Tabs } from '@/ui/tabs'
import { Row, Specimen } from './specimen'

const kinds = ['primary', 'plain', 'ghost', 'danger', 'alarm'] as const

/** What is pressed, filled in and chosen from. */
export function Controls() {
  return (
    <>
      <Buttons />
      <Links />
      <Fields />
      <Boxes />
      <Choices />
    </>
  )
}

function Buttons() {
  return (
    <Specimen part="button" note="44 px high on touch screens. A disabled one says why in its title.">
      {kinds.map((kind) => (
        <Row key={kind} of={kind}>
          <Button kind={kind} size="small">
            Small
          </Button>
          <Button kind={kind}>Medium</Button>
          <Button kind={kind} size="large">
            Large
          </Button>
          <Button kind={kind} icon={<Plus size={15} aria-hidden="true" />}>
            With an icon
          </Button>
          <Button kind={kind} disabled title="Sign in to create pods">
            Disabled
          </Button>
          <Button kind={kind} busy>
            Busy...
          </Button>
        </Row>
      ))}
      <Row of="icon">
        <IconButton label="Refresh">
          <RefreshCw size={15} aria-hidden="true" />
        </IconButton>
        <IconButton label="Close" disabled title="Nothing to close">
          <X size={15} aria-hidden="true" />
        </IconButton>
      </Row>
      <Row of="wide">
        <Button kind="primary" wide>
          As wide as its place
        </Button>
      </Row>
    </Specimen>
  )
}

function Links() {
  return (
    <Specimen part="button-link" note="Look like buttons, open in a new tab like links.">
      <Row of="button link">
        <ButtonLink to="/pods" kind="primary">
          Primary
        </ButtonLink>
        <ButtonLink to="/pods">Plain</ButtonLink>
        <ButtonLink to="/pods" kind="ghost">
          Ghost
        </ButtonLink>
        <ButtonLink to="/pods" icon={<Plus size={15} aria-hidden="true" />}>
          With an icon
        </ButtonLink>
        <ButtonLink button to="/pods">
          Announced as a button
        </ButtonLink>
      </Row>
      <Row of="text link">
        <p>
          A link <TextLink to="/billing">inside a sentence</TextLink> keeps its line.
        </p>
      </Row>
    </Specimen>
  )
}

function Fields() {
  const [on, setOn] = useState(true)
  const [off, setOff] = useState(false)
  return (
    <Specimen part="field" note="The label, hint and error are tied to the control.">
      <div className="dev-fields">
        <Field label="Empty">{(ids) => <TextInput {...ids} placeholder="Custom amount" />}</Field>
        <Field label="With a hint" hint="Up to 255 characters.">
          {(ids) => <TextInput {...ids} defaultValue="datasets" />}
        </Field>
        <Field label="With an error" error="Please enter a valid email address">
          {(ids) => <TextInput {...ids} defaultValue="somebody@" />}
        </Field>
        <Field label="Disabled">
          {(ids) => <TextInput {...ids} disabled title="Sign in to pay" defaultValue="25" />}
        </Field>
        <Field label="Several lines">
          {(ids) => <TextArea {...ids} rows={3} placeholder="ssh-ed25519 AAAA..." />}
        </Field>
        <Field label="Choice">
          {(ids) => (
            <Select {...ids} defaultValue="b">
              <option value="a">datasets</option>
              <option value="b">a volume with quite a long name that has to end somewhere</option>
            </Select>
          )}
        </Field>
        <Field label="Choice, disabled">
          {(ids) => (
            <Select {...ids} disabled>
              <option>No Storage Volumes Available</option>
            </Select>
          )}
        </Field>
      </div>
      <Row of="switch">
        <Switch label="On" checked={on} onChange={setOn} />
        <Switch label="Off" checked={off} onChange={setOff} />
      </Row>
    </Specimen>
  )
}

function Boxes() {
  const [on, setOn] = useState(true)
  const [off, setOff] = useState(false)
  return (
    <Specimen part="checkbox" note="The line below tells what ticking it means.">
      <Row of="ticked">
        <Checkbox label="I have stored the key" checked={on} onChange={setOn} />
      </Row>
      <Row of="with a hint">
        <Checkbox label="Off" hint="Nothing happens until it is ticked." checked={off} onChange={setOff} />
      </Row>
    </Specimen>
  )
}

function Choices() {
  const [team, setTeam] = useState('lab')
  const [tab, setTab] = useState<'one' | 'two' | 'three'>('one')
  return (
    <>
      <Specimen part="menu" note="Opens upwards; arrow keys, Home, End and Esc.">
        <Row of="choice and action">
          <Menu
            label="Teams"
            note="Signed in as somebody@example.com"
            triggerClass="flex h-11 w-full items-center gap-2 rounded-control border border-line-1 bg-ink-1 px-3 text-left text-control text-hi"
            trigger={<span>{team === 'lab' ? 'Deep Sea Lab' : 'Personal'}</span>}
          >
            <MenuItem checked={team === 'lab'} onSelect={() => setTeam('lab')}>
              Deep Sea Lab
            </MenuItem>
            <MenuItem checked={team === 'own'} onSelect={() => setTeam('own')}>
              Personal
            </MenuItem>
            <MenuLine />
            <MenuItem onSelect={() => undefined}>Create new team</MenuItem>
          </Menu>
        </Row>
      </Specimen>
      <Specimen part="tabs">
        <Tabs
          label="Sample"
          value={tab}
          onChange={setTab}
          tabs={[
            { value: 'one', label: 'Credit Added' },
            { value: 'two', label: 'Pod Transactions' },
            { value: 'three', label: 'Storage Transactions' },
          ]}
        >
          <p>The panel of tab {tab}.</p>
        </Tabs>
      </Specimen>
    </>
  )
}
