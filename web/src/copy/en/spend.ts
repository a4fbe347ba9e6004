export const spend = {
  title: 'Spend in 30 days',
  none: 'Nothing spent in the last 30 days',
  day: 'Day (UTC)',
  pods: 'Pods',
  storage: 'Storage',
  total: 'Total',
  table: 'Show table',
  chart: 'Show chart',
} as const
