/** Addresses of pages: links to them, the present one, and a question before it is left. */
import { type ReactNode, useDeferredValue, useEffect, useRef, useState } from 'react';
import {
  type AroundNavHandler,
  Link as PlainLink,
  type LinkProps as PlainLinkProps,
  Router,
  useLocation,
  useParams,
  useSearchParams as useShownParams,
} from 'wouter';
import { useBrowserLocation, useHistoryState, useSearch } from 'wouter/use-browser-location';

export { useHistoryState, useParams };

type Go = () => void;

/** Asked before another page is shown; gets what goes there. */
let guard: ((go: Go) => void) | null = null;

const askFirst: AroundNavHandler = (navigate, to, options) => {
  const go = () => navigate(to, options);
  const { pathname } = new URL(String(to), location.href);
  // A page that takes the place of the present one is that page under its new address.
  if (guard && !options?.replace && pathname !== location.pathname) guard(go);
  else go();
};

// A page that is not loaded yet leaves the one before it in place: path and query change together when it is there.
const usePath = (): ReturnType<typeof useBrowserLocation> => {
  const [path, navigate] = useBrowserLocation();
  return [useDeferredValue(path), navigate];
};
const useQueryText = () => useDeferredValue(useSearch());

/** The address of the browser for all below. */
export function Navigation({ children }: { children: ReactNode }) {
  return (
    <Router hook={usePath} searchHook={useQueryText} aroundNav={askFirst}>
      {children}
    </Router>
  );
}

export type LinkProps = React.ComponentPropsWithRef<'a'> & {
  to: string;
  /** Takes the place of the present address in the history. */
  replace?: boolean;
  /** What `useHistoryState` returns on that page. */
  state?: unknown;
};

/** A link to a page of this site. */
export function Link(props: LinkProps) {
  return <PlainLink {...(props as PlainLinkProps)} />;
}

/** The path of the page that is shown. */
export function usePage(): string {
  return useLocation()[0];
}

/** The query of the page that is shown, and what sets it. A function gets the query of the address as it is when
 * it is called: a page that is slow to render may not show what was chosen just before.
 */
export function useSearchParams(): ReturnType<typeof useShownParams> {
  const [shown, setParams] = useShownParams();
  const page = usePage();
  const now = () => (location.pathname === page ? new URLSearchParams(location.search) : shown);
  return [
    shown,
    (next, options) => setParams(typeof next === 'function' ? () => next(now()) : next, options),
  ];
}

/** Shows another page. */
export function useNavigate() {
  return useLocation()[1];
}

/** While `active`, other pages wait until `leave` is called; the way there is null while nobody wants to leave. */
export function useGuard(active: boolean) {
  const [way, setWay] = useState<{ go: Go } | null>(null);
  const leaving = useRef(false);
  useEffect(() => {
    if (!active) return;
    const { href, pathname } = location;
    const ask = (go: Go) => (leaving.current ? go() : setWay({ go }));
    const goBack = (event: PopStateEvent) => {
      if (location.pathname === pathname) leaving.current = false; // back before the other page was there
      if (leaving.current || location.pathname === pathname) return;
      event.stopImmediatePropagation(); // before the page changes
      history.pushState(null, '', href);
      ask(() => history.back());
    };
    guard = ask;
    window.addEventListener('popstate', goBack, { capture: true });
    return () => {
      guard = null;
      window.removeEventListener('popstate', goBack, { capture: true });
    };
  }, [active]);
  return {
    asked: way !== null,
    stay: () => setWay(null),
    leave: () => {
      leaving.current = true;
      setWay(null);
      way?.go();
    },
  };
}
