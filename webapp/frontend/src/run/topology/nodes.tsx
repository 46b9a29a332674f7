import { VisuallyHidden } from '@mantine/core';
import { Handle, Position, type Node, type NodeProps } from '@xyflow/react';
import { IconAlertTriangle, IconArrowsExchange, IconHome } from '@tabler/icons-react';
import { memo } from 'react';
import { bytes } from '@/format/units';
import { aboutState, stateText, type DeviceState } from '@/run/data/activity';
import type { DeviceView } from '@/run/data/snapshot';
import type { Cards } from './positions';
import classes from './topology.module.css';

export type DeviceNodeType = Node<
  { view: DeviceView; color: string; isSource: boolean; cards: Cards; selected: boolean },
  'device'
>;
export type SwitchNodeType = Node<{ name: string; cards: Cards }, 'switch'>;

const isWarning = (state: DeviceState) => state === 'silent' || state === 'frozen' || state === 'failed';

/** A device: what it does at the instant that is shown, and how full its memory is. */
export const DeviceNode = memo(function DeviceNode({ data }: NodeProps<DeviceNodeType>) {
  return data.cards === 'tile' ? <Tile {...data} /> : <Card {...data} />;
});

function Card({ view, color, isSource, cards, selected }: DeviceNodeType['data']) {
  const compact = cards === 'compact';
  const { state, layer } = view.activity;
  const full = view.memoryBytes > 0 ? view.residentBytes / view.memoryBytes : 0;
  return (
    <div
      className={classes.device}
      data-state={state}
      data-compact={compact || undefined}
      data-selected={selected || undefined}
      style={{ '--device': color } as React.CSSProperties}
      data-testid={`device-${view.name}`}
    >
      <Anchors />
      <div className={classes.name}>
        <span className={classes.title}>{view.name}</span>
        {isSource && <IconHome size={14} aria-label="source: it holds the prompt and receives the result" />}
      </div>
      <div
        className={classes.state}
        title={aboutState(view) || stateText(view)}
        data-testid={`device-state-${view.name}`}
      >
        {isWarning(state) ? (
          <IconAlertTriangle size={13} className={classes.warning} aria-hidden />
        ) : (
          <span className={classes.lamp} />
        )}
        <span className={classes.words}>{compact ? state : stateText(view)}</span>
        {layer !== null && layer >= 0 && !compact && <span className={classes.dim}>layer {layer}</span>}
      </div>
      <div
        className={classes.meter}
        title={`memory: ${bytes(view.residentBytes)} of ${bytes(view.memoryBytes)}, peak ${bytes(view.peakBytes)}`}
      >
        <div style={{ width: `${Math.min(full, 1) * 100}%` }} data-full={full > 0.9 || undefined} />
      </div>
    </div>
  );
}

/** A device among very many: the number in its name, and its state as a colour, in words where the pointer is. */
function Tile({ view, color, isSource, selected }: DeviceNodeType['data']) {
  const { state } = view.activity;
  const text = `${view.name}: ${stateText(view)}`;
  return (
    <div
      className={classes.device}
      data-state={state}
      data-tile
      data-selected={selected || undefined}
      style={{ '--device': color } as React.CSSProperties}
      title={[text, aboutState(view)].filter(Boolean).join('. ')}
      data-testid={`device-${view.name}`}
    >
      <Anchors />
      <VisuallyHidden>{text}</VisuallyHidden>
      {isWarning(state) ? (
        <IconAlertTriangle size={11} className={classes.warning} aria-hidden />
      ) : (
        <span className={classes.lamp} />
      )}
      <span aria-hidden>{isSource ? <IconHome size={12} /> : numberIn(view.name)}</span>
    </div>
  );
}

/** The number at the end of a name, else its first letters. */
function numberIn(name: string): string {
  return /\d{1,3}$/.exec(name)?.[0] ?? name.slice(0, 3);
}

export const SwitchNode = memo(function SwitchNode({ data }: NodeProps<SwitchNodeType>) {
  return (
    <div className={classes.switch} data-tile={data.cards === 'tile' || undefined}>
      <Anchors />
      <IconArrowsExchange size={15} />
      {data.name}
    </div>
  );
});

function Anchors() {
  return (
    <>
      <Handle type="source" position={Position.Bottom} className={classes.anchor} isConnectable={false} />
      <Handle type="target" position={Position.Top} className={classes.anchor} isConnectable={false} />
    </>
  );
}
