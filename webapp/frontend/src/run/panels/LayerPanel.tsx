import { SegmentedControl } from '@mantine/core';
import { useState } from 'react';
import { seconds } from '@/format/units';
import { LayerBars } from '@/run/charts/LayerBars';
import chartClasses from '@/run/charts/charts.module.css';
import type { LayerLatency } from '@/run/data/layerTimes';
import { Panel } from '@/components/Panel';

interface Props {
  prefill: LayerLatency | null;
  newest: LayerLatency | null;
}

/** Seconds per layer in the prefill or in the newest complete forward pass. */
export function LayerPanel({ prefill, newest }: Props) {
  const [which, setWhich] = useState<'prefill' | 'newest'>('prefill');
  const decoding = newest !== null && newest.token > 0;
  const shown = which === 'newest' && decoding ? newest : prefill;
  const total = shown?.seconds.filter(Number.isFinite).reduce((sum, value) => sum + value, 0) ?? 0;
  return (
    <Panel
      title="Latency per layer"
      testId="layers"
      about={
        shown
          ? `${which === 'newest' && decoding ? `token ${shown.token}` : 'prefill'}, ${seconds(total)} in all layers`
          : undefined
      }
      extra={
        decoding && (
          <SegmentedControl
            size="xs"
            value={which}
            onChange={(value) => setWhich(value as 'prefill' | 'newest')}
            data-testid="layers-which"
            data={[
              { value: 'prefill', label: 'Prefill' },
              { value: 'newest', label: 'Newest token' },
            ]}
          />
        )
      }
    >
      {shown ? (
        <LayerBars values={shown.seconds} height={158} />
      ) : (
        <div className={chartClasses.empty} style={{ height: 178 }}>
          No layer computed yet
        </div>
      )}
    </Panel>
  );
}
