import { NumberInput, SegmentedControl, Select, SimpleGrid, Text } from '@mantine/core';
import type { Draft } from '@/run/request/draft';

interface Props {
  draft: Draft;
  /** Whether every device of the cluster is a board. */
  bound: boolean;
  set: (patch: Partial<Draft>) => void;
  errorOf: (path: string) => string | undefined;
}

const ABOUT: Record<Draft['dilationKind'], string> = {
  auto: 'As many real seconds per virtual second as this machine needs to keep the pace of the devices.',
  native: 'No pacing: operations take what this machine needs. Measures the runtime itself.',
  nodes: 'Each device runs on its board, as fast as that is, over the network between them.',
  fixed: 'Real seconds per virtual second.',
};

/** How the run is executed, in a line. */
export function executionText(draft: Draft): string {
  const dilation =
    draft.dilationKind === 'fixed'
      ? `fixed ${draft.dilation} ×`
      : draft.dilationKind === 'native'
        ? 'native'
        : 'automatic';
  const world = draft.dilationKind === 'nodes' ? 'on the boards' : `dilation ${dilation}`;
  const after = draft.failover === 'replan' ? 'plan again after a failure' : 'end at a failure';
  const limit = draft.tokenLimit_s ? `, ${draft.tokenLimit_s} s per token at most` : '';
  return `${world}, seed ${draft.seed}, ${after}${limit}`;
}

/** How the run is executed: dilation, compute model, seed, failover and limits. */
export function ExecutionForm({ draft, bound, set, errorOf }: Props) {
  return (
    <>
      <SimpleGrid cols={2} spacing="md">
        <div>
          <Text size="sm" fw={500} mb={3}>
            Time dilation
          </Text>
          <SegmentedControl
            size="xs"
            fullWidth
            value={draft.dilationKind}
            onChange={(kind) => set({ dilationKind: kind as Draft['dilationKind'] })}
            data={[
              { value: 'auto', label: 'Automatic' },
              { value: 'fixed', label: 'Fixed' },
              { value: 'native', label: 'Native' },
              ...(bound || draft.dilationKind === 'nodes'
                ? [{ value: 'nodes', label: 'On the boards' }]
                : []),
            ]}
            data-testid="dilation-kind"
          />
          <Text size="xs" c="dimmed" mt={4}>
            {ABOUT[draft.dilationKind]}
          </Text>
          {draft.dilationKind === 'fixed' && (
            <NumberInput
              mt="xs"
              size="xs"
              value={draft.dilation}
              min={0.01}
              suffix=" ×"
              decimalScale={3}
              allowNegative={false}
              aria-label="Dilation"
              error={errorOf('dilation')}
              onChange={(value) => typeof value === 'number' && value > 0 && set({ dilation: value })}
              data-testid="dilation"
            />
          )}
        </div>
        <Select
          label="Compute model"
          value={draft.computeModel ?? 'own'}
          allowDeselect={false}
          data-testid="compute-model"
          onChange={(value) =>
            set({ computeModel: value === 'own' ? null : (value as Draft['computeModel']) })
          }
          data={[
            { value: 'own', label: 'Each device’s own' },
            { value: 'roofline', label: 'Roofline everywhere' },
            { value: 'serial', label: 'Memory, then compute' },
            { value: 'measured', label: 'Measured, scaled' },
            { value: 'flops', label: 'FLOPs alone' },
          ]}
        />
      </SimpleGrid>
      <SimpleGrid cols={2} spacing="md" mt="sm">
        <NumberInput
          label="Seed"
          value={draft.seed}
          min={0}
          allowDecimal={false}
          allowNegative={false}
          error={errorOf('seed')}
          data-testid="seed"
          onChange={(value) => typeof value === 'number' && set({ seed: value })}
        />
      </SimpleGrid>
      <SimpleGrid cols={2} spacing="md" mt="sm">
        <div>
          <Text size="sm" fw={500} mb={3}>
            When a device fails
          </Text>
          <SegmentedControl
            size="xs"
            fullWidth
            value={draft.failover}
            onChange={(value) => set({ failover: value as Draft['failover'] })}
            data-testid="failover"
            data={[
              { value: 'replan', label: 'Plan again and go on' },
              { value: 'stop', label: 'End the run' },
            ]}
          />
        </div>
        <NumberInput
          label="Silence timeout"
          value={draft.silence_s}
          min={0.001}
          suffix=" s"
          decimalScale={3}
          allowNegative={false}
          error={errorOf('silence_s')}
          onChange={(value) => typeof value === 'number' && value > 0 && set({ silence_s: value })}
          data-testid="silence"
        />
        <NumberInput
          label="Limit on the time of a token"
          description="A run in which a token takes longer ends as out of time. LIME’s authors use 40 s."
          placeholder="No limit"
          value={draft.tokenLimit_s ?? ''}
          min={0.001}
          suffix=" s"
          decimalScale={3}
          allowNegative={false}
          error={errorOf('workload.token_limit_s')}
          onChange={(value) => set({ tokenLimit_s: typeof value === 'number' && value > 0 ? value : null })}
          data-testid="token-limit"
        />
      </SimpleGrid>
    </>
  );
}
