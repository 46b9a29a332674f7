import { ActionIcon, Select, Text } from '@mantine/core';
import { IconX } from '@tabler/icons-react';
import type { Change, ClusterSpec } from '@/api/types';
import type { RowAnswer } from '@/experiment/data/answers';
import { KINDS, type Kind, momentOf, subjectOf, valueOf, withKind } from '@/run/scenario/changes';
import { ScenarioLine } from './ScenarioLine';
import classes from './design.module.css';

interface Props {
  changes: readonly Change[];
  cluster: ClusterSpec | null;
  rows: readonly RowAnswer[];
  onChange: (changes: Change[]) => void;
}

/** What happens to the cluster during every run: on a time line, each removable, and a kind to add. */
export function Changes({ changes, cluster, rows, onChange }: Props) {
  const ends = rows.flatMap(({ metrics }) => metrics['latency_s'] ?? []);
  return (
    <div data-testid="base-changes">
      {changes.length > 0 && <ScenarioLine changes={changes} ends={ends} />}
      <ul className={classes.changes}>
        {changes.map((change, at) => {
          const late = ends.filter((end) => end < change.at_s).length;
          return (
            <li key={`${at} ${JSON.stringify(change)}`}>
              {momentOf(change)}: {inWords(change)}
              <ActionIcon
                variant="subtle"
                color="gray"
                size="xs"
                aria-label={`Remove: ${inWords(change)}`}
                onClick={() => onChange(changes.filter((other) => other !== change))}
              >
                <IconX size={12} />
              </ActionIcon>
              {late > 0 && (
                <Text span size="xs" c="var(--loom-warn)" data-testid="change-late">
                  {` · ${late} of ${ends.length} points are predicted to end before it`}
                </Text>
              )}
            </li>
          );
        })}
      </ul>
      {cluster && (
        <Select
          size="xs"
          value={null}
          placeholder="Add a change, half way through the run"
          aria-label="Add a change"
          data={KINDS.filter(({ subject }) => subject === 'device' || cluster.links.length > 0).map(
            ({ value, label, subject }) => ({ value, label: `${subject}: ${label}` }),
          )}
          onChange={(kind) => kind && onChange([...changes, halfWay(kind as Kind, cluster)])}
          data-testid="add-change"
        />
      )}
    </div>
  );
}

/** A change of this kind after half of the run: of the first link, or of the last device that is not the source. */
function halfWay(kind: Kind, cluster: ClusterSpec): Change {
  const device = cluster.devices.findLast(({ name }) => name !== cluster.source)?.name ?? cluster.source;
  return { ...withKind({ kind: 'drop_device', at_s: 0, device }, kind, cluster), at_frac: 0.5 };
}

function inWords(change: Change): string {
  const { label, unit } = KINDS.find(({ value }) => value === change.kind)!;
  const value = valueOf(change);
  return `${subjectOf(change)} ${label}${value === null ? '' : ` ${value} ${unit}`}`;
}
