import { useState } from 'react'
import { Switch } from '@/ui/field'
import { Page } from '@/ui/page'
import { Controls } from './controls'
import { Foundations } from './foundations'
import { Overlays } from './overlays'
import { Specimen } from './specimen'
import { States } from './states'

/**
 * Every part of src/ui in all its states, for whoever changes one. Development only: its texts are samples, not
 * the product's, and stand here instead of in the copy.
 */
export function DevUi() {
  const [refreshing, setRefreshing] = useState(false)
  return (
    <Page
      title="Parts"
      subtitle="Everything in src/ui, in all its states. Look at it at 390 px too, and by keyboard."
      refreshing={refreshing}
      actions={<Switch label="Tide line" checked={refreshing} onChange={setRefreshing} />}
    >
      <Specimen part="page" note="Title, subtitle, actions and the tide line: the head of this page.">
        <p>A page has one h1, takes the focus when it is reached, and names the document.</p>
      </Specimen>
      <Foundations />
      <Controls />
      <States />
      <Overlays />
    </Page>
  )
}
