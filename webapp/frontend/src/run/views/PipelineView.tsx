import { SegmentedControl } from '@mantine/core';
import { useState } from 'react';
import type { LayoutOf } from '@/api/types';
import { percent, seconds } from '@/format/units';
import { deviceColor } from '@/theme/deviceColors';
import type { RunData } from '@/run/data/runData';
import { Panel } from '@/components/Panel';
import type { ViewProps } from './props';
import { DeviceName, range } from './parts';
import { type Passes, passesOf } from './passes';
import classes from './views.module.css';

/** Tokens that "newest" shows. */
const NEWEST_TOKENS = 6;
/** At most this many passes are drawn. */
const MAX_PASSES = 600;
const ROW = 26;
/** Gaps narrower than one of so many pixels are not drawn. */
const PIXELS = 1_500;

type Layout = LayoutOf<'pipeline' | 'planned_pipeline' | 'device_map'>;
type Stage = Layout['stages'][number];

/** A pipeline: which stage computes which request when, and the bubbles between. */
export function PipelineView({ layout, model, devices, data }: ViewProps<Layout>) {
  const [which, setWhich] = useState<'newest' | 'all'>('newest');
  const { stages } = layout;
  const [from_s, to_s] = stretchOf(data, which);
  const lines = stages.map((stage) => {
    const ring = data?.device(devices[stage.device]?.name ?? '')?.lanes.compute;
    return {
      stage,
      ...(ring ? passesOf(ring, from_s, to_s, (to_s - from_s) / PIXELS) : { passes: [], busy_s: 0 }),
    };
  });
  const requests = [...new Set(lines.flatMap(({ passes }) => passes.map((pass) => pass.request)))]
    .filter((one) => one >= 0)
    .toSorted((a, b) => a - b);
  return (
    <Panel
      title="Pipeline"
      testId="view-pipeline"
      about={`${stages.length} stages; gaps are bubbles`}
      extra={
        data && (
          <SegmentedControl
            size="xs"
            value={which}
            onChange={(value) => setWhich(value as 'newest' | 'all')}
            data-testid="pipeline-which"
            data={[
              { value: 'newest', label: 'Newest tokens' },
              { value: 'all', label: 'Whole run' },
            ]}
          />
        )
      }
    >
      <div
        className={classes.grid}
        style={{
          gridTemplateColumns: 'max-content max-content minmax(0, 1fr) max-content',
          columnGap: 16,
          rowGap: 6,
        }}
      >
        <span className={classes.dim}>stage</span>
        <span className={classes.dim}>layers</span>
        <span className={classes.dim} style={{ display: 'flex', justifyContent: 'space-between' }}>
          {data && to_s > 0 && (
            <>
              <span>{seconds(from_s)}</span>
              <span>{seconds(to_s)}</span>
            </>
          )}
        </span>
        <span className={`${classes.dim} ${classes.right}`}>bubbles</span>
        {lines.map(({ stage, passes, busy_s }) => (
          <Line
            key={stage.device}
            stage={stage}
            passes={passes}
            busy_s={busy_s}
            from_s={from_s}
            to_s={to_s}
            layers={model.num_layers}
            name={devices[stage.device]?.name ?? ''}
            gone={data?.device(devices[stage.device]?.name ?? '')?.failedAt_s != null}
            running={data !== null}
          />
        ))}
      </div>
      <div className={classes.legend}>
        {requests.length > 1 &&
          requests.slice(0, 12).map((request) => (
            <span key={request}>
              <span className={classes.swatch} style={{ background: deviceColor(request) }} />
              request {request}
            </span>
          ))}
        {requests.length === 1 && (
          <span>a single request keeps one stage busy at a time: several at once fill the bubbles</span>
        )}
      </div>
    </Panel>
  );
}

interface LineProps extends Passes {
  stage: Stage;
  from_s: number;
  to_s: number;
  layers: number;
  name: string;
  gone: boolean;
  running: boolean;
}

function Line({ stage, passes, busy_s, from_s, to_s, layers, name, gone, running }: LineProps) {
  const scale = 100 / Math.max(to_s - from_s, 1e-9);
  const count = stage.stop - stage.start;
  return (
    <>
      <DeviceName rank={stage.device} name={name} gone={gone} />
      <span style={{ fontSize: 13 }}>
        {count > 0 ? range(stage.start, stage.stop) : 'none'} <span className={classes.dim}>({count})</span>
      </span>
      {running ? (
        <svg
          className={classes.canvas}
          height={ROW}
          viewBox={`0 0 100 ${ROW}`}
          preserveAspectRatio="none"
          role="img"
          aria-label={`Passes of ${name}`}
          data-testid={`passes-${name}`}
        >
          <rect width={100} height={ROW} fill="var(--loom-sunken)" />
          {passes.slice(-MAX_PASSES).map((pass, at) => (
            <rect
              key={at}
              x={(Math.max(pass.start_s, from_s) - from_s) * scale}
              y={2}
              height={ROW - 4}
              fill={deviceColor(Math.max(pass.request, 0))}
              width={Math.max((Math.min(pass.end_s, to_s) - Math.max(pass.start_s, from_s)) * scale, 0.12)}
              opacity={pass.token % 2 === 0 ? 1 : 0.62}
            >
              <title>{`request ${pass.request}, token ${pass.token}: ${seconds(pass.end_s - pass.start_s)}`}</title>
            </rect>
          ))}
        </svg>
      ) : (
        <div className={classes.bar}>
          <div
            className={classes.piece}
            title={`layers ${range(stage.start, stage.stop)}`}
            style={{
              left: `${(stage.start / layers) * 100}%`,
              width: `${(count / layers) * 100}%`,
              background: deviceColor(stage.device),
            }}
          />
        </div>
      )}
      <span className={classes.right} style={{ fontSize: 13 }}>
        {running && passes.length > 0 ? percent(Math.max(0, 1 - busy_s / (to_s - from_s))) : '–'}
      </span>
    </>
  );
}

/** The stretch of virtual time that is shown. */
function stretchOf(data: RunData | null, which: 'newest' | 'all'): [number, number] {
  if (!data) return [0, 0];
  const { tokens, time_s } = data;
  const from = which === 'newest' ? tokens.at(Math.max(tokens.length - 1 - NEWEST_TOKENS, 0)) : undefined;
  return [tokens.length > NEWEST_TOKENS && from ? from.time_s : 0, time_s];
}
