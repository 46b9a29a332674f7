import { Text } from '@mantine/core';
import { DataTable } from '@/components/DataTable';
import type { FigureVerdict } from '@/experiment/data/answers';
import classes from './reproductions.module.css';
import { StateKey } from './StateKey';
import { deviationText } from './verdicts';

/** Every published figure beside ours, with its state and why. */
export function VerdictTable({ verdicts }: { verdicts: readonly FigureVerdict[] }) {
  const worlds = new Set(verdicts.map(({ world }) => world));
  return (
    <div className={classes.figures}>
      <DataTable
        data-testid="verdicts"
        minWidth={760}
        maxHeight={460}
        verticalSpacing={5}
        rows={verdicts}
        keyOf={({ id, world }) => `${id} ${world}`}
        columns={[
          {
            head: 'Where',
            width: 130,
            cell: ({ where }) => (
              <Text size="xs" c="dimmed">
                {where}
              </Text>
            ),
          },
          {
            head: 'What',
            cell: ({ what, why }) => (
              <>
                {what}
                {why && (
                  <Text size="xs" c="dimmed">
                    {why}
                  </Text>
                )}
              </>
            ),
          },
          worlds.size > 1 && { head: 'World', cell: ({ world }) => world },
          {
            head: 'Published',
            right: true,
            look: { className: classes.value },
            cell: (one) => one.published,
          },
          { head: 'Ours', right: true, look: { className: classes.ours }, cell: ({ ours }) => ours },
          {
            head: 'Deviation',
            right: true,
            look: { className: classes.value },
            cell: ({ deviation }) => (
              <Text span size="xs" c="dimmed">
                {deviationText(deviation)}
              </Text>
            ),
          },
          {
            head: 'State',
            width: 185,
            cell: ({ state, repeats }) => <StateKey state={state} repeats={repeats} />,
          },
        ]}
      />
    </div>
  );
}
