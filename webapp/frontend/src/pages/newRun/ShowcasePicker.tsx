import { useExpected } from '@/api/queries';
import type { Showcase } from '@/api/types';
import classes from './newRun.module.css';

interface Props {
  showcases: readonly Showcase[];
  /** The showcase that the form is filled in with, and the run beside it; "" is its own. */
  chosen: { name: string; other: string } | null;
  onChoose: (name: string, other: string) => void;
}

/** The showcases: each fills in the whole form. */
export function ShowcasePicker({ showcases, chosen, onChoose }: Props) {
  const open = showcases.find(({ name }) => name === chosen?.name);
  const runs = open
    ? [{ name: '', title: `${open.request.strategy}, the showcase itself` }, ...open.others]
    : [];
  return (
    <div>
      <div className={classes.chips} role="radiogroup" aria-label="Showcase">
        {showcases.map(({ name, title, request }) => (
          <button
            key={name}
            type="button"
            role="radio"
            aria-checked={name === chosen?.name}
            className={classes.option}
            onClick={() => onChoose(name, '')}
            title={`${title}: ${request.strategy}, ${request.model}, ${request.cluster?.name}`}
            data-testid={`choose-showcase-${name}`}
          >
            <small>{title}</small>
          </button>
        ))}
      </div>
      {open && (
        <>
          <p className={classes.about} data-testid="showcase-look-for">
            {open.look_for}
          </p>
          <Expected showcase={open} />
          <div className={classes.beside} role="radiogroup" aria-label="Run of the showcase">
            {runs.map(({ name, title }) => (
              <button
                key={name}
                type="button"
                role="radio"
                aria-checked={name === chosen?.other}
                className={classes.option}
                onClick={() => onChoose(open.name, name)}
                data-testid={`choose-other-${name}`}
              >
                <small>{title}</small>
              </button>
            ))}
          </div>
        </>
      )}
    </div>
  );
}

/** What to expect, with figures once the server has predicted them. */
function Expected({ showcase }: { showcase: Showcase }) {
  return <p className={classes.about}>{useExpected(showcase)}</p>;
}
