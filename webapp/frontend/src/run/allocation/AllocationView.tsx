import { Group, SegmentedControl } from '@mantine/core';
import { memo, useMemo, useState } from 'react';
import type { ModelSpec, Plan } from '@/api/types';
import { percent } from '@/format/units';
import { deviceColor } from '@/theme/deviceColors';
import { Panel } from '@/components/Panel';
import type { PlanVersion } from '@/run/data/runData';
import { versionsOf } from './versions';
import {
  allocate,
  describeSlice,
  phasesDiffer,
  type Allocation,
  type Column,
  type Piece,
  type ShownPhase,
} from './cells';
import classes from './allocation.module.css';

interface Props {
  plan: Plan;
  model: ModelSpec;
  devices: readonly string[];
  /** Layer that each device computes now; null for none. */
  active?: readonly (number | null)[];
  /** The phase the run is in; shown until a person chooses. */
  phase?: ShownPhase;
  /** All plans that were made, oldest first: `plan` is the last of them with what has changed since. */
  made?: readonly PlanVersion[];
  /** Whether the run is over: its last plan is the final one. */
  over?: boolean;
  /** Another one where a page has several. */
  title?: string;
}

/** Layer × device: which heads, columns or positions of every layer each device holds and computes. */
export function AllocationView({
  plan: inForce,
  model,
  devices,
  active,
  phase = 'prefill',
  made = NONE,
  over = false,
  title = 'Allocation',
}: Props) {
  const [chosen, setChosen] = useState<ShownPhase | null>(null);
  const [version, setVersion] = useState<string | null>(null);
  const [hover, setHover] = useState('');
  const versions = versionsOf(inForce, made, over);
  const one = versions.find(({ label }) => label === version) ?? versions.at(-1)!;
  const { plan } = one;
  const differ = phasesDiffer(plan);
  const shown = chosen ?? phase;
  const allocation = useAllocation(plan, model, shown);
  const axes = allocation.axes.map(({ axis, size }) => `${size} ${axis}`).join(', ');
  return (
    <Panel
      title={title}
      testId="allocation"
      about={
        one.about ? (
          <span className={classes.replanned} data-testid="replanned">
            {one.about}
          </span>
        ) : axes ? (
          `each bar spans ${axes}`
        ) : (
          'whole layers'
        )
      }
      extra={
        <Group gap="xs" wrap="nowrap">
          {versions.length > 1 && (
            <SegmentedControl
              size="xs"
              value={one.label}
              onChange={setVersion}
              aria-label="Plan that is shown"
              data-testid="allocation-version"
              data={versions.map(({ label }) => label)}
            />
          )}
          {differ && (
            <SegmentedControl
              size="xs"
              value={shown}
              onChange={(value) => setChosen(value as ShownPhase)}
              data-testid="allocation-phase"
              data={[
                { value: 'prefill', label: 'Prefill' },
                { value: 'decode', label: 'Decode' },
              ]}
            />
          )}
        </Group>
      }
    >
      <div className={classes.scroll}>
        <div
          className={classes.grid}
          style={{ gridTemplateColumns: template(allocation.columns) }}
          onMouseLeave={() => setHover('')}
        >
          <span className={classes.corner}>layer</span>
          {allocation.columns.map((column) => (
            <span key={column.key} className={classes.label}>
              {labelOf(column, model.num_layers)}
            </span>
          ))}
          <span className={classes.corner} style={{ textAlign: 'right' }}>
            share
          </span>
          {devices.map((name, rank) => (
            <Row
              key={name}
              name={name}
              rank={rank}
              allocation={allocation}
              active={plan === inForce ? (active?.[rank] ?? null) : null}
              onHover={setHover}
            />
          ))}
        </div>
      </div>
      <div className={classes.foot}>
        <span data-testid="allocation-hover">
          {hover ||
            'In every cell: attention above, feed-forward below. Filled: computes. Pale: only holds weights.'}
        </span>
      </div>
    </Panel>
  );
}

function useAllocation(plan: Plan, model: ModelSpec, phase: ShownPhase): Allocation {
  return useMemo(() => allocate(plan, model, phase), [plan, model, phase]);
}

const NONE: readonly PlanVersion[] = [];

interface RowProps {
  name: string;
  rank: number;
  allocation: Allocation;
  active: number | null;
  onHover: (text: string) => void;
}

const Row = memo(function Row({ name, rank, allocation, active, onHover }: RowProps) {
  const color = deviceColor(rank);
  const share = allocation.share(rank);
  return (
    <>
      <span className={classes.device}>
        <span className={classes.dot} style={{ background: color }} />
        {name}
      </span>
      {allocation.columns.map((column) => {
        const all = column.parts.flatMap((part) => allocation.pieces(rank, column, part));
        const text = sentence(name, all);
        const computing = column.layer >= 0 && column.layer === active;
        return (
          <div
            key={column.key}
            className={classes.cell}
            data-active={computing || undefined}
            title={text}
            onMouseEnter={() => onHover(text)}
            data-testid={`allocation-${name}-${column.key}`}
          >
            {column.parts.map((part) => (
              <div key={part} className={classes.part}>
                {allocation.pieces(rank, column, part).map((piece, index) => (
                  <Bar key={index} piece={piece} color={color} />
                ))}
              </div>
            ))}
          </div>
        );
      })}
      <span className={classes.share} data-testid={`allocation-share-${name}`}>
        {share > 0 ? percent(share) : '–'}
      </span>
    </>
  );
});

function Bar({ piece, color }: { piece: Piece; color: string }) {
  return (
    <div
      className={classes.piece}
      data-kind={piece.kind}
      style={
        {
          left: `${piece.from * 100}%`,
          width: `${(piece.to - piece.from) * 100}%`,
          '--piece': color,
        } as React.CSSProperties
      }
    />
  );
}

function sentence(device: string, pieces: Piece[]): string {
  const works = pieces.filter((piece) => piece.kind === 'work').map((piece) => describeSlice(piece.slice));
  if (works.length > 0) return `${device} computes ${works.join(' and ')}`;
  const held = pieces.map((piece) => `${describeSlice(piece.slice)} (${piece.kind})`);
  return held.length > 0
    ? `${device} only holds ${held.join(' and ')}`
    : `${device} has no part of this layer`;
}

function template(columns: Column[]): string {
  const cells = columns.map((column) => (column.layer < 0 ? 'minmax(34px, 44px)' : 'minmax(14px, 1fr)'));
  return `minmax(76px, max-content) ${cells.join(' ')} 52px`;
}

function labelOf(column: Column, layers: number): string {
  const every = layers > 48 ? 8 : layers > 24 ? 4 : layers > 12 ? 2 : 1;
  return column.layer < 0 || column.layer % every === 0 ? column.label : '';
}
