import { useEffect, useRef, useState, type RefObject } from 'react';
import classes from './report.module.css';

interface Entry {
  title: string;
  section: HTMLElement;
}

/** Links to the sections of a page, in their order; follows what appears below `of` while data arrive. */
export function Contents({ of }: { of: RefObject<HTMLElement | null> }) {
  const entries = useSections(of);
  const bar = useRef<HTMLElement>(null);
  if (entries.length < 3) return null;
  return (
    <nav ref={bar} className={classes.contents} aria-label="Contents" data-testid="contents">
      {entries.map(({ title, section }) => (
        <button key={title} type="button" onClick={() => goTo(section, bar.current)}>
          {title}
        </button>
      ))}
    </nav>
  );
}

function useSections(of: RefObject<HTMLElement | null>): Entry[] {
  const [entries, setEntries] = useState<Entry[]>([]);
  useEffect(() => {
    const root = of.current;
    if (!root) return;
    const read = () => {
      const found = [...root.querySelectorAll<HTMLElement>('section[aria-label]')].map((section) => ({
        title: section.getAttribute('aria-label') ?? '',
        section,
      }));
      setEntries((before) =>
        before.length === found.length && before.every((one, at) => one.section === found[at]?.section)
          ? before
          : found,
      );
    };
    read();
    const observer = new MutationObserver(read);
    observer.observe(root, { childList: true, subtree: true });
    return () => observer.disconnect();
  }, [of]);
  return entries;
}

/** Pixels between the bar and the section that was gone to. */
const GAP_PX = 16;

function goTo(section: HTMLElement, bar: HTMLElement | null) {
  if (bar) {
    const { position, top } = getComputedStyle(bar);
    const covered_px = position === 'sticky' ? parseFloat(top) + bar.offsetHeight : 0;
    section.style.scrollMarginTop = `${covered_px + GAP_PX}px`;
  }
  const calm = matchMedia('(prefers-reduced-motion: reduce)').matches;
  section.scrollIntoView({ behavior: calm ? 'auto' : 'smooth', block: 'start' });
  section.tabIndex = -1;
  section.focus({ preventScroll: true });
}
