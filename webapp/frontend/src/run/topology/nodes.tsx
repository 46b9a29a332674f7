import { Handle, Position, type Node, type NodeProps } from '@xyflow/react';
import { IconAlertTriangle, IconArrowsExchange, IconHome } from '@tabler/icons-react';
import { memo } from 'react';
import { bytes } from '@/format/units';
import { aboutState, stateText, type DeviceState } from '@/run/data/activity';
import type { DeviceView } from '@/run/data/snapshot';
import classes from './topology.module.css';

export type DeviceNodeType = Node<
  { view: DeviceView; color: string; isSource: boolean; compact: boolean; selected: boolean },
  'device'
>;
export type SwitchNodeType = Node<{ name: string }, 'switch'>;

const isWarning = (state: DeviceState) => state === 'no sign' || state === 'frozen' || state === 'failed';

/** A device: what it does at the instant that is shown, and how full its memory is. */
export const DeviceNode = memo(function DeviceNode({ data }: NodeProps<DeviceNodeType>) {
  const { view, color, isSource, compact, selected } = data;
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
        title={aboutState(view) || undefined}
        data-testid={`device-state-${view.name}`}
      >
        {isWarning(state) ? (
          <IconAlertTriangle size={13} className={classes.warning} aria-hidden />
        ) : (
          <span className={classes.lamp} />
        )}
        {compact ? state : stateText(view)}
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
});

export const SwitchNode = memo(function SwitchNode({ data }: NodeProps<SwitchNodeType>) {
  return (
    <div className={classes.switch}>
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
