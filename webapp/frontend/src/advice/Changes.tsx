import { Loader, Text } from '@mantine/core';
import { sentence } from '@/api/client';
import type { AdviceChange } from '@/api/types';
import classes from './advice.module.css';

interface Props {
  changes: readonly AdviceChange[] | undefined;
  error: Error | null;
  busy: boolean;
  why: string | undefined;
}

const SHOWN = 6;

/** What single changes of the cluster would do, each tried by prediction. */
export function Changes({ changes, error, busy, why }: Props) {
  if (error) {
    return (
      <Text size="xs" c="dimmed">
        {sentence(error)}
      </Text>
    );
  }
  if (!changes && why) {
    return (
      <Text size="xs" c="dimmed" data-testid="changes-wait">
        {why} They are tried again by themselves.
      </Text>
    );
  }
  if (!changes) return busy ? <Loader size="xs" /> : null;
  const telling = changes.filter(({ gain }) => gain === null || Math.abs(gain - 1) >= 0.02);
  return (
    <ul className={classes.changes} data-testid="advice-changes" aria-busy={busy}>
      {telling.slice(0, SHOWN).map((change) => (
        <li key={change.kind + change.name} data-helps={change.gain === null || change.gain > 1 || undefined}>
          {change.sentence}
        </li>
      ))}
      {telling.length === 0 && <li>No single change of those tried makes a difference.</li>}
    </ul>
  );
}
