export const palette = {
  placeholder: 'Go to a page, switch team, copy an SSH command',
  none: 'Nothing found',
  pages: 'Pages',
  teams: 'Switch team',
  pods: 'Copy SSH command',
  gpus: 'Create with GPU',
  actions: 'Actions',
} as const
