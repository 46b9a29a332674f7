import { Alert, Text } from '@mantine/core';
import type { PreviewAnswer } from '@/experiment/data/answers';

const MOST = 4;

/** What is wrong with the design, and why some points have no value: each reason once, with its number of points. */
export function CellProblems({ preview, stale }: { preview: PreviewAnswer; stale: boolean }) {
  const counts = new Map<string, number>();
  for (const { problem } of preview.points) if (problem) counts.set(problem, (counts.get(problem) ?? 0) + 1);
  for (const { state, reason } of preview.rows)
    if (state === 'failed' && reason) counts.set(reason, (counts.get(reason) ?? 0) + 1);
  const reasons = [...counts].toSorted(([, a], [, b]) => b - a);
  if (preview.problems.length === 0 && reasons.length === 0) return null;
  return (
    <Alert
      color={preview.problems.length > 0 ? 'red' : 'yellow'}
      p="sm"
      opacity={stale ? 0.5 : 1}
      data-testid="design-problems"
    >
      {preview.problems.map(({ path, message }) => (
        <Text key={path + message} size="sm">
          {message}
        </Text>
      ))}
      {reasons.slice(0, MOST).map(([reason, count]) => (
        <Text key={reason} size="sm">
          {count} {count === 1 ? 'point has' : 'points have'} no value: {reason}
        </Text>
      ))}
      {reasons.length > MOST && (
        <Text size="sm" c="dimmed">
          and {reasons.length - MOST} more reasons: the table of the figure names them
        </Text>
      )}
    </Alert>
  );
}
