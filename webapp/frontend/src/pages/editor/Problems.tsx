import { IconAlertTriangle } from '@tabler/icons-react';
import classes from './editor.module.css';
import { editor } from './editorStore';
import type { PlacedProblem } from './problems';

/** All problems of the cluster; pressing one selects its node or link. */
export function Problems({ problems }: { problems: readonly PlacedProblem[] }) {
  const { select } = editor();
  if (problems.length === 0) return null;
  return (
    <div className={classes.problems} role="alert" data-testid="problems">
      {problems.map(({ item, message }) => (
        <button
          key={`${item} ${message}`}
          type="button"
          className={classes.problem}
          onClick={() =>
            select(
              item.includes('--') ? { nodes: [], links: [item] } : { nodes: item ? [item] : [], links: [] },
            )
          }
        >
          <IconAlertTriangle size={15} /> {message}
        </button>
      ))}
    </div>
  );
}
