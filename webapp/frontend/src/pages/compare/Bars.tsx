import { Select, Text } from '@mantine/core';
import { useState } from 'react';
import { Panel } from '@/components/Panel';
import { metricText } from '@/format/metrics';
import { seconds } from '@/format/units';
import { seriesColor } from '@/theme/seriesColors';
import { type Box, boxOf, type Comparison } from './comparison';
import classes from './compare.module.css';

const TOKENS = 'tokens';

/** One figure of all runs as bars, or the times of their tokens as boxes. */
export function Bars({ comparison }: { comparison: Comparison }) {
  const metrics = comparison.metrics.filter((row) => row.values.filter((value) => value !== null).length > 1);
  const boxes = comparison.series.map(({ token_s }) => boxOf(token_s.slice(1)));
  const hasBoxes = boxes.some((box) => box !== null);
  const [chosen, setChosen] = useState<string>(hasBoxes ? TOKENS : (metrics[0]?.name ?? ''));
  const row = metrics.find(({ name }) => name === chosen);
  const values = row?.values ?? boxes.map((box) => box?.most ?? null);
  const largest = Math.max(...values.map((value) => value ?? 0));
  if (largest <= 0) return null;
  return (
    <Panel
      title="One figure"
      about={row ? undefined : 'each box is half of the tokens after the first, its line the median'}
      testId="compare-bars"
      extra={
        <Select
          size="xs"
          w={240}
          aria-label="Figure"
          allowDeselect={false}
          value={chosen}
          data={[
            ...(hasBoxes ? [{ value: TOKENS, label: 'Time of each token' }] : []),
            ...metrics.map(({ name, title }) => ({ value: name, label: title })),
          ]}
          onChange={(name) => name && setChosen(name)}
          data-testid="bar-figure"
        />
      }
    >
      <div className={classes.bars}>
        {comparison.runs.map((run, at) => {
          const value = values[at] ?? null;
          const box = boxes[at] ?? null;
          return (
            <div key={run.id} className={classes.stackRow} data-testid={`bar-${run.id}`}>
              <Text size="sm" truncate title={run.name}>
                {run.id} {run.name}
              </Text>
              <div className={classes.lane}>
                {row
                  ? value !== null && (
                      <div
                        className={classes.bar}
                        style={{ width: `${(100 * value) / largest}%`, background: seriesColor(at) }}
                      />
                    )
                  : box && <BoxMark box={box} largest={largest} color={seriesColor(at)} />}
              </div>
              <Text size="sm" ta="right">
                {row ? metricText(value, row.unit) : box ? seconds(box.median) : '–'}
              </Text>
            </div>
          );
        })}
      </div>
    </Panel>
  );
}

function BoxMark({ box, largest, color }: { box: Box; largest: number; color: string }) {
  const place = (value: number) => `${(100 * value) / largest}%`;
  const width = (from: number, to: number) => `max(2px, ${(100 * (to - from)) / largest}%)`;
  const label = `from ${seconds(box.least)} to ${seconds(box.most)}, half of them from ${seconds(box.lower)} to ${seconds(box.upper)}, median ${seconds(box.median)}`;
  return (
    <div role="img" aria-label={label} title={label} className={classes.whole}>
      <div
        className={classes.whisker}
        style={{ left: place(box.least), width: width(box.least, box.most) }}
      />
      <div
        className={classes.box}
        style={{
          left: place(box.lower),
          width: width(box.lower, box.upper),
          borderColor: color,
          background: `color-mix(in srgb, ${color} 30%, var(--loom-surface))`,
        }}
      />
      <div className={classes.median} style={{ left: place(box.median) }} />
    </div>
  );
}
