import { Group, Slider } from '@mantine/core';
import { useDebouncedCallback } from '@mantine/hooks';
import { memo, useRef } from 'react';
import { rate } from '@/format/units';
import { NumberField } from './NumberField';
import { fromSlider, SLIDER_MAX, sliderMarks, toSlider } from '@/format/rateScale';
import classes from './live.module.css';

/** A slider that has not moved for this long sends its value. */
const SETTLED_MS = 250;

/** A pointer that moved less than this many pixels on the thumb only touched it. */
const TOUCH_PX = 3;

interface Props {
  link: string;
  bit_per_s: number;
  /** The slider's rate that was not sent yet, or not answered; null: the one in force. */
  draft: number | null;
  enabled: boolean;
  /** Whether the decades are named below the slider. */
  named: boolean;
  onDraft: (bit_per_s: number | null) => void;
  onSet: (bit_per_s: number) => void;
}

/**
 * The rate of a link: a slider over five decades, and a field for the exact number. It takes long to render, and a
 * page that is watched has four pictures a second.
 */
export const RateControl = memo(function RateControl({
  link,
  bit_per_s,
  draft,
  enabled,
  named,
  onDraft,
  onSet,
}: Props) {
  const press = useRef<{ x: number; onThumb: boolean; moved: boolean; down: boolean } | null>(null);
  const waiting = useRef<number | null>(null); // moved to, and not sent yet
  const settle = useDebouncedCallback(() => {
    if (press.current?.down || waiting.current === null) return;
    if (waiting.current === bit_per_s) onDraft(null);
    else onSet(waiting.current);
    waiting.current = null;
  }, SETTLED_MS);
  const begin = (x: number, target: Element) => {
    const held = { x, onThumb: target.closest('[role=slider]') !== null, moved: false, down: true };
    press.current = held;
    const move = (event: PointerEvent) => {
      if (Math.abs(event.clientX - x) > TOUCH_PX) held.moved = true;
    };
    const end = () => {
      held.down = false;
      window.removeEventListener('pointermove', move);
      window.removeEventListener('pointerup', end);
      window.removeEventListener('pointercancel', end);
      settle();
    };
    window.addEventListener('pointermove', move);
    window.addEventListener('pointerup', end);
    window.addEventListener('pointercancel', end);
  };
  return (
    <Group
      gap="sm"
      wrap="nowrap"
      mt={6}
      onKeyDownCapture={() => {
        press.current = null; // the slider itself would not hand this on: it has a handler of its own
      }}
    >
      <Slider
        className={classes.slider}
        classNames={{ markLabel: classes.sliderMark }}
        size="sm"
        min={0}
        max={SLIDER_MAX}
        step={5}
        value={toSlider(draft ?? bit_per_s)}
        marks={named ? sliderMarks : sliderMarks.map(({ value }) => ({ value }))}
        mb={named ? 16 : 0}
        label={(value) => rate(fromSlider(value))}
        disabled={!enabled}
        restrictToMarks={false}
        thumbLabel={`Rate of ${link}`}
        data-testid={`link-rate-${link}`}
        onPointerDownCapture={(event) => begin(event.clientX, event.target as Element)}
        onChange={(position) => {
          // The slider takes the place of the pointer for its value, also where the thumb is only touched.
          if (press.current?.onThumb && !press.current.moved) return;
          waiting.current = fromSlider(position);
          onDraft(waiting.current);
          settle();
        }}
      />
      <NumberField
        className={classes.exact}
        value={(draft ?? bit_per_s) / 1e6}
        suffix=" Mbit/s"
        min={0.001}
        max={1e5}
        decimalScale={6}
        disabled={!enabled}
        aria-label={`Exact rate of ${link}`}
        testId={`link-set-${link}`}
        onSet={(mbit_per_s) => onSet(mbit_per_s * 1e6)}
      />
    </Group>
  );
});
