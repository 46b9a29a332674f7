import { seconds } from '@/format/units';
import { spanColors } from '@/theme/spanColors';
import classes from './charts.module.css';

interface Props {
  /** Seconds per layer; NaN where a layer has not been computed. */
  values: number[];
  color?: string;
  height?: number;
}

/** One bar per layer: from the layer's first start to its last end over all devices. */
export function LayerBars({ values, color = spanColors.compute, height = 150 }: Props) {
  const top = Math.max(...values.filter(Number.isFinite), 0);
  const every = values.length > 48 ? 8 : values.length > 24 ? 4 : values.length > 16 ? 2 : 1;
  return (
    <div data-testid="layer-latency">
      <div className={classes.bars} style={{ height }}>
        {values.map((value, layer) => (
          <div
            key={layer}
            className={classes.column}
            title={`layer ${layer}: ${Number.isFinite(value) ? seconds(value) : 'not computed'}`}
          >
            <div
              style={{
                height: top > 0 && Number.isFinite(value) ? `${(value / top) * 94}%` : 0,
                background: color,
              }}
            />
          </div>
        ))}
      </div>
      <div className={classes.ticks}>
        {values.map((_, layer) => (
          <span key={layer}>{layer % every === 0 ? layer : ''}</span>
        ))}
      </div>
    </div>
  );
}
