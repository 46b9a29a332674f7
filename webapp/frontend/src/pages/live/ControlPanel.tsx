import { Group, Tabs, Text } from '@mantine/core';
import { useEffect, useState } from 'react';
import type { ClusterSpec, Mark } from '@/api/types';
import type { Snapshot } from '@/run/data/snapshot';
import type { Selection } from '@/run/topology/Topology';
import { DeviceRow } from './DeviceRow';
import { LinkRow } from './LinkRow';
import { UndoButton } from './UndoButton';
import classes from './live.module.css';

interface Props {
  runId: number;
  picture: Snapshot;
  cluster: ClusterSpec;
  selection: Selection;
  onSelect: (selection: Selection) => void;
  /** The marks of all changes so far. */
  marks: readonly Mark[];
  /** Whether changes are possible now. */
  enabled: boolean;
  /** Whether the present is shown, not an earlier instant. */
  isPresent: boolean;
  /** Whether a running run keeps sending events. */
  isCurrent: boolean;
  /** Why this person may not change the run; null if they may. */
  locked: string | null;
}

/** Controls of a running run: rate, delay, packet loss and state of links; speed, failure and return of devices. */
export function ControlPanel({
  runId,
  picture,
  cluster,
  selection,
  onSelect,
  marks,
  enabled,
  isPresent,
  isCurrent,
  locked,
}: Props) {
  const [tab, setTab] = useState<string | null>('link');
  useEffect(() => {
    if (selection) setTab(selection.kind);
  }, [selection]);
  const isChosen = (kind: 'link' | 'device', name: string) =>
    selection?.kind === kind && selection.name === name;
  return (
    <section className={classes.controls} aria-label="Live changes" data-testid="controls">
      <Tabs value={tab} onChange={setTab} classNames={{ root: classes.tabs, panel: classes.tabPanel }}>
        <Group gap={0} wrap="nowrap">
          <Tabs.List>
            <Tabs.Tab value="link" data-testid="tab-links">
              Links
            </Tabs.Tab>
            <Tabs.Tab value="device" data-testid="tab-devices">
              Devices
            </Tabs.Tab>
          </Tabs.List>
          <Group gap={8} wrap="nowrap" className={classes.hint}>
            <Text size="xs" c="dimmed" truncate miw={0}>
              {hint(enabled, isPresent, isCurrent, locked, picture.state)}
            </Text>
            {enabled && <UndoButton runId={runId} cluster={cluster} marks={marks} />}
          </Group>
        </Group>
        <Tabs.Panel value="link">
          {picture.links.map((link) => (
            <LinkRow
              key={link.name}
              runId={runId}
              link={link}
              refusals={picture.refusals}
              enabled={enabled}
              chosen={isChosen('link', link.name)}
              focused={isChosen('link', link.name) && selection?.focused === true}
              onChoose={() => onSelect({ kind: 'link', name: link.name })}
            />
          ))}
          {picture.links.length === 0 && (
            <Text size="sm" c="dimmed" p="md">
              This cluster has no links.
            </Text>
          )}
        </Tabs.Panel>
        <Tabs.Panel value="device">
          {picture.devices.map((device, rank) => (
            <DeviceRow
              key={device.name}
              runId={runId}
              device={device}
              spec={cluster.devices[rank]!}
              rank={rank}
              enabled={enabled}
              isHeard={isPresent && isCurrent && picture.state === 'running'}
              refusals={picture.refusals}
              chosen={isChosen('device', device.name)}
              focused={isChosen('device', device.name) && selection?.focused === true}
              onChoose={() => onSelect({ kind: 'device', name: device.name })}
            />
          ))}
        </Tabs.Panel>
      </Tabs>
    </section>
  );
}

function hint(
  enabled: boolean,
  isPresent: boolean,
  isCurrent: boolean,
  locked: string | null,
  state: string,
): string {
  if (!isPresent) return 'as it was then';
  if (enabled) return isCurrent ? 'changes apply at once' : 'changes wait: the run sends nothing';
  if (locked) return locked;
  return state === 'finished' || state === 'failed' || state === 'cancelled'
    ? 'the run is over'
    : state === 'running'
      ? 'locked until the page is up to date'
      : 'possible while the run is running';
}
