import type { LayoutOf, Mark } from '@/api/types';
import { seconds } from '@/format/units';
import { deviceColor } from '@/theme/deviceColors';
import { Panel } from '@/components/Panel';
import { numbers, text } from '@/run/data/facts';
import { nameOf, type ViewProps } from './props';
import { bandsNow } from './bands';
import { DeviceName, MethodEvents, range } from './parts';
import classes from './views.module.css';

const SIDE = 232;
const LEFT = 34;
const TOP = 18;

type Layout = LayoutOf<'positions'>;
type Band = Layout['shards'][number];

/** Voltage: every device computes all layers for its own positions and needs the keys of the others. */
export function BandsView({ layout, model, devices, data }: ViewProps<Layout>) {
  const since_s = data?.plans.replanned?.time_s ?? 0;
  const renewed = (data?.methodMarks.toArray() ?? []).filter(
    (mark) => mark.name === 'repartitioned' && mark.time_s >= since_s,
  );
  const bands = bandsNow(layout, model.causal, renewed);
  const positions = Math.max(1, ...bands.map((band) => band.stop));
  const owner = layout.owner === null ? null : nameOf(devices, layout.owner);
  const prefill = data?.layers.prefill();
  return (
    <Panel
      title="Position bands"
      testId="view-bands"
      about={`which device computes which of the ${positions} positions, and the keys it needs`}
    >
      <div className={classes.columns}>
        <Matrix bands={bands} positions={positions} causal={model.causal} />
        <div className={classes.grow}>
          <div
            className={classes.grid}
            style={{
              gridTemplateColumns: 'max-content minmax(90px, 1fr) repeat(3, max-content)',
              columnGap: 22,
            }}
          >
            {[
              'device',
              renewed.length > 0 ? 'share now' : 'share of the prompt',
              'positions',
              'keys',
              'order of products',
            ].map((head) => (
              <span key={head} className={classes.dim}>
                {head}
              </span>
            ))}
            {bands.map((band) => (
              <Row key={band.device} band={band} positions={positions} name={nameOf(devices, band.device)} />
            ))}
          </div>
          <div className={classes.note}>
            After every layer each device sends its rows to all others ({layout.gather}).
            {model.causal &&
              (owner
                ? ` ${owner} generates the tokens after the prompt alone.`
                : ' Every new token is a pass over all positions.')}
            {prefill &&
              ` The prompt took ${seconds(prefill.seconds.reduce((sum, one) => sum + one, 0))} in the layers.`}
          </div>
          <MethodEvents marks={renewed} describe={repartition} />
        </div>
      </div>
    </Panel>
  );
}

function repartition({ facts }: Mark): string {
  const ends = numbers(facts['bounds']).slice(1).join(', ');
  return `from layer ${text(facts['layer'])} on, the positions end at ${ends}: ${text(facts['reason'])}`;
}

function Row({ band, positions, name }: { band: Band; positions: number; name: string }) {
  const count = band.stop - band.start;
  return (
    <>
      <DeviceName rank={band.device} name={name} />
      <div className={classes.bar} data-thin>
        <div
          style={{
            height: '100%',
            width: `${(count / positions) * 100}%`,
            background: deviceColor(band.device),
          }}
        />
      </div>
      <span style={{ fontSize: 13 }}>
        {count > 0 ? `${range(band.start, band.stop)}` : 'none'}{' '}
        <span className={classes.dim}>({count})</span>
      </span>
      <span style={{ fontSize: 13 }}>{count > 0 ? band.keys_stop : '–'}</span>
      <span className={classes.dim}>
        {band.score_order === band.value_order
          ? band.score_order
          : `scores ${band.score_order}, values ${band.value_order}`}
      </span>
    </>
  );
}

/** The attention matrix: a row per query position, a column per key position. */
function Matrix({ bands, positions, causal }: { bands: Band[]; positions: number; causal: boolean }) {
  const at = (position: number) => (position / positions) * SIDE;
  return (
    <svg
      className={classes.svg}
      width={SIDE + LEFT + 8}
      height={SIDE + TOP + 8}
      role="img"
      aria-label="Attention matrix by device"
    >
      <text x={LEFT} y={11} className={classes.axis}>
        keys →
      </text>
      <text transform={`translate(11 ${TOP + SIDE}) rotate(-90)`} className={classes.axis}>
        positions computed
      </text>
      <g transform={`translate(${LEFT} ${TOP})`}>
        <rect width={SIDE} height={SIDE} fill="var(--loom-sunken)" rx={4} />
        {bands.map((band) => (
          <g key={band.device}>
            <rect
              y={at(band.start)}
              width={at(band.keys_stop)}
              height={at(band.stop - band.start)}
              fill={deviceColor(band.device)}
              opacity={0.32}
            />
            <polygon
              points={
                causal
                  ? triangle(at(band.start), at(band.stop))
                  : box(at(band.start), at(band.stop), at(band.keys_stop))
              }
              fill={deviceColor(band.device)}
            />
          </g>
        ))}
        {bands.map((band) => (
          <line
            key={band.device}
            x2={SIDE}
            y1={at(band.stop)}
            y2={at(band.stop)}
            stroke="var(--loom-surface)"
            strokeWidth={1.5}
          />
        ))}
      </g>
      {bands.map(
        (band) =>
          band.stop > band.start && (
            <text
              key={band.device}
              x={LEFT - 5}
              y={TOP + at(band.start) + 10}
              textAnchor="end"
              className={classes.axis}
            >
              {band.start}
            </text>
          ),
      )}
    </svg>
  );
}

/** A causal model keeps the scores of a band up to the diagonal. */
function triangle(top: number, bottom: number): string {
  return `0,${top} ${top},${top} ${bottom},${bottom} 0,${bottom}`;
}

function box(top: number, bottom: number, width: number): string {
  return `0,${top} ${width},${top} ${width},${bottom} 0,${bottom}`;
}
