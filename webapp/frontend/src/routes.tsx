import { createElement } from 'react';
import { Route, Switch } from 'wouter';
import { askForRun, askForSession, askForStart } from '@/api/queries';
import { later } from '@/components/later';
import { NotFound } from '@/components/NotFound';
import { StartPage } from './pages/start/StartPage';

const ClustersPage = later(async () => (await import('./pages/clusters/ClustersPage')).ClustersPage);
const EditorPage = later(async () => (await import('./pages/editor/EditorPage')).EditorPage);
const RunsPage = later(async () => (await import('./pages/runs/RunsPage')).RunsPage);
const NewRunPage = later(async () => (await import('./pages/newRun/NewRunPage')).NewRunPage);
const RunPage = later(async () => (await import('./pages/run/RunPage')).RunPage);
const ComparePage = later(async () => (await import('./pages/compare/ComparePage')).ComparePage);
const ExperimentsPage = later(
  async () => (await import('./pages/experiments/list/ExperimentsPage')).ExperimentsPage,
);
const DesignPage = later(async () => (await import('./pages/experiments/design/DesignPage')).DesignPage);
const PointsPage = later(async () => (await import('./pages/experiments/compare/PointsPage')).PointsPage);
const ReproductionsPage = later(
  async () => (await import('./pages/experiments/reproductions/ReproductionsPage')).ReproductionsPage,
);
const ResultPage = later(async () => (await import('./pages/experiments/result/ResultPage')).ResultPage);
const AccountPage = later(async () => (await import('./pages/account/AccountPage')).AccountPage);
const MachinesPage = later(async () => (await import('./pages/machines/MachinesPage')).MachinesPage);

/** The first one that fits an address is its page; `help` is the page of the manual about it, below /docs/. */
export const PAGES = [
  { path: '/clusters', page: ClustersPage, help: 'guides/drawing' },
  { path: '/clusters/new', page: EditorPage, help: 'guides/drawing' },
  { path: '/clusters/:id', page: EditorPage, help: 'guides/drawing' },
  { path: '/runs', page: RunsPage, help: 'guides/runs#the-list-of-runs' },
  { path: '/runs/new', page: NewRunPage, help: 'guides/runs' },
  { path: '/runs/:id', page: RunPage, help: 'guides/runs#while-it-runs' },
  { path: '/compare', page: ComparePage, help: 'guides/runs#comparing' },
  { path: '/experiments', page: ExperimentsPage, help: 'guides/experiments' },
  { path: '/experiments/new', page: DesignPage, help: 'guides/experiments' },
  { path: '/experiments/compare', page: PointsPage, help: 'guides/experiments' },
  { path: '/experiments/reproductions', page: ReproductionsPage, help: 'results/reproductions' },
  { path: '/experiments/:id', page: ResultPage, help: 'guides/experiments' },
  { path: '/account', page: AccountPage, help: 'guides/security' },
  { path: '/machines', page: MachinesPage, help: 'guides/operations' },
];

/** The addresses of a page; `:id` is the number of an item, so that a malformed address has no page. */
export function addressesOf(path: string): RegExp {
  return new RegExp(`^${path.replace(':id', '(?<id>[1-9]\\d{0,14})')}/?$`, 'i');
}

/** The page of the manual about the page of an address; the tutorial for the start page. */
export function helpFor(address: string): string {
  return `/docs/${PAGES.find(({ path }) => addressesOf(path).test(address))?.help ?? 'tutorial'}`;
}

/** The page of the present address. All pages except the first are loaded when they are opened. */
export function Pages() {
  // Without keys: the editor stays when a new cluster gets its number.
  return createElement(
    Switch,
    null,
    createElement(Route, { path: '/', component: StartPage }),
    ...PAGES.map(({ path, page }) => createElement(Route, { path: addressesOf(path), component: page })),
    createElement(Route, { component: NotFound }),
  );
}

/** Loads the page of an address and asks for what it shows, while it is not yet known who is logged in. */
export function ahead(address: string): void {
  const fits = (path: string) => addressesOf(path).exec(address);
  askForSession();
  if (address === '/') void askForStart();
  const number = fits('/runs/:id')?.groups?.id;
  if (number !== undefined) askForRun(Number(number));
  const found = PAGES.find(({ path }) => fits(path));
  found?.page.load().catch(() => undefined); // the page says what is wrong when it is shown
}
