import { Text } from '@mantine/core';
import type { RunDetail } from '@/api/types';
import { Panel } from '@/components/Panel';
import classes from './report.module.css';

/** The report in words: how long it took, where the time went, what changes did, and what one should not believe. */
export function FindingPanel({ run }: { run: RunDetail }) {
  const [first, ...others] = run.finding?.sentences ?? [];
  if (!first) return null;
  return (
    <Panel title="In short" testId="finding">
      <div className={classes.finding}>
        <Text fw={600}>{first}</Text>
        <Text>{others.join(' ')}</Text>
      </div>
    </Panel>
  );
}
