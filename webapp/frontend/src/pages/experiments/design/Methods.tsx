import { Tooltip, UnstyledButton } from '@mantine/core';
import { IconCheck } from '@tabler/icons-react';
import type { StrategyRow } from '@/api/types';
import type { Method } from '@/experiment/data/design';
import classes from './design.module.css';

interface Props {
  strategies: readonly StrategyRow[];
  methods: readonly Method[];
  /** By strategy the reason why it cannot run this model on this cluster; null if it can. */
  reasons: Readonly<Record<string, string | null>>;
  onChange: (methods: Method[]) => void;
}

/** The strategies to compare, each one tick. */
export function Methods({ strategies, methods, reasons, onChange }: Props) {
  const chosen = (name: string) => methods.some(({ strategy }) => strategy === name);
  const toggle = ({ name, title }: StrategyRow) =>
    onChange(
      chosen(name)
        ? methods.filter(({ strategy }) => strategy !== name)
        : inOrder(strategies, [...methods, { strategy: name, title, params: {} }]),
    );
  return (
    <div className={classes.methods} role="group" aria-label="Strategies">
      {strategies.map((row) => {
        const reason = reasons[row.name];
        return (
          <Tooltip
            key={row.name}
            label={reason ? `Not here: ${reason}` : row.summary}
            multiline
            maw={340}
            position="right"
          >
            <UnstyledButton
              role="checkbox"
              aria-checked={chosen(row.name)}
              aria-disabled={Boolean(reason) || undefined}
              className={classes.method}
              onClick={() => (reason && !chosen(row.name)) || toggle(row)}
              data-testid={`method-${row.name}`}
            >
              <span className={classes.tick}>{chosen(row.name) && <IconCheck size={12} stroke={3} />}</span>
              <span>{methods.find(({ strategy }) => strategy === row.name)?.title ?? row.title}</span>
            </UnstyledButton>
          </Tooltip>
        );
      })}
    </div>
  );
}

/** Methods in the order of the catalogue: a line keeps its colour whichever was ticked first. */
function inOrder(strategies: readonly StrategyRow[], methods: Method[]): Method[] {
  const place = (method: Method) => strategies.findIndex(({ name }) => name === method.strategy);
  return methods.toSorted((a, b) => place(a) - place(b));
}
