import type { LayoutOf } from '@/api/types';
import { bytes, joules, percent, seconds } from '@/format/units';
import { deviceColor } from '@/theme/deviceColors';
import { spanColors } from '@/theme/spanColors';
import { Panel } from '@/components/Panel';
import { nameOf, type ViewProps } from './props';
import { DeviceName } from './parts';
import { treeOf } from './tree';
import classes from './views.module.css';

type Layout = LayoutOf<'tree'>;
type Estimate = Layout['block'][string];

const REGIME: Record<Layout['regime'], string> = {
  resident: 'all blocks stay on chip',
  'double-buffered': 'the next block is fetched while this one is computed',
  streamed: 'every matrix is fetched in tiles as it is needed',
};
const STEP_Y = 62;
const MOST_NAMED = 16;

/** Microcontrollers: the reduction tree of partial sums, and where the weights of each chip are. */
export function TreeView({ layout, model, devices }: ViewProps<Layout>) {
  const { group } = layout;
  const { nodes, width, depth } = treeOf(group[0] ?? 0, layout.tree);
  const named = group.length <= MOST_NAMED;
  const step = named ? 92 : 20;
  const at = (node: { x: number; depth: number }) =>
    [step / 2 + node.x * step, 18 + node.depth * STEP_Y] as const;
  const place = new Map(nodes.map((node) => [node.rank, at(node)]));
  const inner = new Set(nodes.map((node) => node.parent));
  const slices = layout.slice_bytes;
  const name = (rank: number) => nameOf(devices, rank);
  return (
    <Panel
      title="Reduction tree"
      testId="view-tree"
      about={`${group.length === 1 ? '1 chip' : `${group.length} chips`}, ${layout.serial_hops} messages one after the other per sum · ${layout.regime}: ${REGIME[layout.regime]}`}
    >
      <div style={{ overflowX: 'auto' }}>
        <svg
          className={classes.svg}
          style={{ maxWidth: 'none' }}
          width={Math.max(width, 1) * step}
          height={depth * STEP_Y + 52}
          role="img"
          aria-label="Reduction tree"
        >
          {nodes.map((node) => {
            const above = node.parent === null ? undefined : place.get(node.parent);
            if (!above) return null;
            const [x, y] = at(node);
            const [px, py] = above;
            return (
              <path
                key={node.rank}
                d={`M${x},${y} C${x},${y - STEP_Y / 2} ${px},${py + STEP_Y / 2} ${px},${py}`}
                fill="none"
                stroke="var(--loom-wire)"
                strokeWidth={1.5}
              />
            );
          })}
          {nodes.map((node) => {
            const [x, y] = at(node);
            return (
              <g key={node.rank} transform={`translate(${x} ${y})`} data-testid={`tree-${name(node.rank)}`}>
                <circle
                  r={node.parent === null ? 10 : named ? 8 : 6}
                  fill={deviceColor(node.rank)}
                  stroke="var(--loom-surface)"
                  strokeWidth={2}
                />
                {named &&
                  (inner.has(node.rank) ? (
                    <text x={15} y={-1}>
                      {name(node.rank)}
                    </text>
                  ) : (
                    <text y={24} textAnchor="middle">
                      {name(node.rank)}
                    </text>
                  ))}
                <title>{`${name(node.rank)}: ${bytes(slices[group.indexOf(node.rank)] ?? 0)} per block${node.parent === null ? ', the root' : `, sends its sum to ${name(node.parent)}`}`}</title>
              </g>
            );
          })}
        </svg>
      </div>
      <div className={classes.columns} style={{ marginTop: 14 }}>
        {named && (
          <Memory
            {...{ regimes: layout.regimes, group, slices, name, layers: model.num_layers }}
            limits={group.map((rank) => devices[rank]?.on_chip_weight_bytes ?? null)}
          />
        )}
        <Estimates block={layout.block} />
      </div>
    </Panel>
  );
}

interface MemoryProps {
  regimes: Layout['regimes'];
  group: number[];
  slices: number[];
  limits: (number | null)[];
  layers: number;
  name: (rank: number) => string;
}

function Memory({ regimes, group, slices, limits, layers, name }: MemoryProps) {
  return (
    <div
      className={`${classes.grid} ${classes.grow}`}
      style={{ gridTemplateColumns: 'max-content minmax(80px, 1fr) max-content max-content', columnGap: 16 }}
    >
      {['chip', 'weights of all blocks on chip', '', 'regime'].map((head) => (
        <span key={head} className={classes.dim}>
          {head}
        </span>
      ))}
      {group.map((rank, at) => {
        const need = (slices[at] ?? 0) * layers;
        const limit = limits[at] ?? null;
        const over = limit !== null && need > limit;
        return [
          <DeviceName key="name" rank={rank} name={name(rank)} />,
          <div key="bar" className={classes.bar} data-thin>
            <div
              style={{
                height: '100%',
                width: `${Math.min(limit ? need / limit : 0, 1) * 100}%`,
                background: over ? 'var(--loom-warn)' : deviceColor(rank),
              }}
            />
          </div>,
          <span key="text" className={classes.right} style={{ fontSize: 12 }}>
            {limit === null
              ? `${bytes(need)}, no limit`
              : `${bytes(need)} of ${bytes(limit)} (${percent(need / limit)})`}
          </span>,
          <span key="regime" className={classes.dim} title={REGIME[regimes[at] ?? 'resident']}>
            {regimes[at]}
          </span>,
        ];
      })}
    </div>
  );
}

const PARTS = [
  ['compute_s', 'compute', spanColors.compute],
  ['on_chip_s', 'on-chip memory', spanColors.stage],
  ['off_chip_s', 'off-chip memory', spanColors.load],
  ['link_s', 'links', spanColors.send],
] as const;

/** The planner's estimate of the time and energy of one block. */
function Estimates({ block }: { block: Layout['block'] }) {
  const phases = Object.entries(block).map(([phase, estimate]) => ({ phase, estimate }));
  if (phases.length === 0) return null;
  const total = (estimate: Estimate) => PARTS.reduce((sum, [key]) => sum + estimate[key], 0);
  const longest = Math.max(...phases.map(({ estimate }) => total(estimate)));
  return (
    <div className={classes.grow}>
      <div
        className={classes.grid}
        style={{ gridTemplateColumns: 'max-content minmax(80px, 1fr) max-content', columnGap: 14 }}
      >
        <span className={classes.dim}>one block</span>
        <span className={classes.dim}>predicted parts</span>
        <span className={classes.dim}>paper's accounting · steady state · energy</span>
        {phases.map(({ phase, estimate }) => [
          <span key="phase" style={{ fontSize: 13, fontWeight: 500 }}>
            {phase}
          </span>,
          <div
            key="bar"
            className={classes.bar}
            data-thin
            style={{ display: 'flex' }}
            title={PARTS.map(([key, label]) => `${label} ${seconds(estimate[key])}`).join(', ')}
          >
            {PARTS.map(([key, , color]) => (
              <div key={key} style={{ width: `${(estimate[key] / longest) * 100}%`, background: color }} />
            ))}
          </div>,
          <span key="energy" className={classes.right} style={{ fontSize: 12 }}>
            {seconds(estimate.paper_s)} · {seconds(estimate.steady_s)} · {joules(estimate.energy_j)}
            {estimate.full_s > 0 && (
              <div
                className={classes.dim}
                title={`tiles of L1 ${seconds(estimate.tiles_s)}, intermediate tensors in L3 ${seconds(estimate.tensors_s)}, weights as above`}
              >
                with all transfers {seconds(estimate.full_s)} · {joules(estimate.full_j)}
              </div>
            )}
          </span>,
        ])}
      </div>
      <div className={classes.legend}>
        {PARTS.map(([key, label, color]) => (
          <span key={key}>
            <span className={classes.swatch} style={{ background: color }} />
            {label}
          </span>
        ))}
      </div>
    </div>
  );
}
