import { Button, Group, Select, Text } from '@mantine/core';
import { IconDeviceFloppy, IconPlus, IconRepeat } from '@tabler/icons-react';
import { useMemo, useState } from 'react';
import { useNavigate } from '@/components/navigation';
import { api, sentence } from '@/api/client';
import { useCatalogue, useChange } from '@/api/queries';
import type { Change, RunDetail } from '@/api/types';
import { ErrorPanel } from '@/components/ErrorPanel';
import { Panel } from '@/components/Panel';
import { inOrder, rateCurve, withKind } from '@/run/scenario/changes';
import { ChangeRow } from './ChangeRow';
import { CurveForm } from './CurveForm';
import classes from './recorder.module.css';
import type { Row } from './row';
import { TimeStrip } from './TimeStrip';

interface Props {
  run: RunDetail;
  /** What has been done to the cluster so far, in order. */
  recorded: readonly Change[];
  end_s: number;
  mayWrite: boolean;
}

let nextKey = 0;
const rowOf = (change: Change): Row => ({ key: (nextKey += 1), change });

/** What was done to the cluster, by hand or by the scenario, as a scenario that can be edited, saved and replayed. */
export function Recorder({ run, recorded, end_s, mayWrite }: Props) {
  const { cluster } = run.spec;
  const [edited, setEdited] = useState<Row[] | null>(null);
  const taken = useMemo(() => recorded.map(rowOf), [recorded]);
  const rows = edited ?? taken;
  const edit = (change: (rows: Row[]) => Row[]) => setEdited(change([...rows]));
  const replace = (key: number, change: Change) =>
    edit((all) => all.map((row) => (row.key === key ? { key, change } : row)));
  const scenario = { changes: inOrder(rows.map((row) => row.change)) };
  const blank = { kind: 'drop_device', at_s: end_s / 2, device: cluster.devices[0]?.name ?? '' } as const;
  const kind = cluster.links.length > 0 ? 'set_rate' : 'slow_device';
  return (
    <Panel
      title="Recorder"
      testId="recorder"
      about={
        edited
          ? `${counted(rows.length)}, edited`
          : rows.length > 0
            ? `${counted(rows.length)} of this run as a scenario`
            : 'changes that you make are recorded here as a scenario'
      }
      extra={
        <Group gap="xs">
          {edited && (
            <Button size="xs" variant="subtle" color="gray" onClick={() => setEdited(null)}>
              As recorded
            </Button>
          )}
          <Button
            size="xs"
            variant="default"
            leftSection={<IconPlus size={14} />}
            data-testid="recorder-add"
            onClick={() => edit((all) => [...all, rowOf(withKind(blank, kind, cluster))])}
          >
            Change
          </Button>
          <CurveForm
            cluster={cluster}
            end_s={end_s}
            onAdd={(curve) => edit((all) => [...all, ...rateCurve(curve).map(rowOf)])}
          />
          <Button
            size="xs"
            variant="default"
            leftSection={<IconDeviceFloppy size={14} />}
            disabled={rows.length === 0}
            data-testid="recorder-save"
            onClick={() => save(`scenario-run-${run.id}.json`, scenario)}
          >
            Save
          </Button>
        </Group>
      }
    >
      {rows.length > 0 && (
        <>
          <TimeStrip
            rows={rows}
            end_s={end_s}
            onMove={(row, at_s) => replace(row.key, { ...row.change, at_s })}
          />
          <div className={classes.rows} data-testid="recorder-rows">
            {rows
              .toSorted((a, b) => a.change.at_s - b.change.at_s)
              .map((row) => (
                <ChangeRow
                  key={row.key}
                  change={row.change}
                  cluster={cluster}
                  onChange={(change) => replace(row.key, change)}
                  onRemove={() => edit((all) => all.filter((one) => one.key !== row.key))}
                />
              ))}
          </div>
          <Replay run={run} scenario={scenario} mayWrite={mayWrite} />
        </>
      )}
    </Panel>
  );
}

function Replay({
  run,
  scenario,
  mayWrite,
}: {
  run: RunDetail;
  scenario: { changes: Change[] };
  mayWrite: boolean;
}) {
  const catalogue = useCatalogue();
  const navigate = useNavigate();
  const [strategy, setStrategy] = useState(run.strategy);
  const replay = useChange('runs', (body: object) =>
    api.post<{ id: number }>(`/runs/${run.id}/replay`, body),
  );
  const body = { scenario, ...(strategy === run.strategy ? {} : { strategy }) };
  return (
    <>
      <Group gap="xs" mt="sm">
        <Text size="sm">Run it again with these changes and</Text>
        <Select
          size="xs"
          w={200}
          aria-label="Strategy of the replay"
          value={strategy}
          allowDeselect={false}
          data={(catalogue.data?.strategies ?? []).map((row) => ({ value: row.name, label: row.title }))}
          onChange={(value) => setStrategy(value ?? run.strategy)}
        />
        <Button
          size="xs"
          leftSection={<IconRepeat size={14} />}
          disabled={!mayWrite}
          loading={replay.isPending || replay.isSuccess}
          data-testid="recorder-replay"
          onClick={() => replay.mutate(body, { onSuccess: ({ id }) => navigate(`/runs/${id}`) })}
        >
          Replay
        </Button>
      </Group>
      {replay.isError && <ErrorPanel message={sentence(replay.error)} />}
    </>
  );
}

function counted(changes: number): string {
  return changes === 1 ? 'one change' : `${changes} changes`;
}

/** A file that the form of a new run and `./loom run --scenario` read. */
function save(name: string, scenario: { changes: Change[] }): void {
  const url = URL.createObjectURL(
    new Blob([JSON.stringify(scenario, null, 2)], { type: 'application/json' }),
  );
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  URL.revokeObjectURL(url);
}
