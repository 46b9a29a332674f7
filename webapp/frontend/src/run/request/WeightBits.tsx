import { SegmentedControl, Tooltip } from '@mantine/core';
import type { Draft } from './draft';

export type Bits = Draft['weight_bits'];

interface Props {
  bits: Bits;
  onBits: (bits: Bits) => void;
  size?: 'xs' | 'sm';
}

const BITS: readonly Bits[] = [null, 8, 4];
const label = (bits: Bits) => (bits ? `${bits} bits` : 'Full weights');

/** Chooses the bits of the model's matrices. */
export function WeightBits({ bits, onBits, size = 'sm' }: Props) {
  return (
    <Tooltip
      multiline
      w={300}
      label="Fewer bits take less memory and are read faster. The report says how many tokens that changed, and how far it moved the logits."
    >
      <SegmentedControl
        size={size}
        value={label(bits)}
        onChange={(value) => onBits(BITS.find((each) => label(each) === value) ?? null)}
        data={BITS.map(label)}
        data-testid="weight-bits"
      />
    </Tooltip>
  );
}
