import { Route, Switch } from 'wouter';
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

/** The page of the present address. All pages except the first are loaded when they are opened. */
export function Pages() {
  // Without keys: the editor stays when a new cluster gets its number.
  return (
    <Switch>
      <Route path="/" component={StartPage} />
      <Route path="/clusters" component={ClustersPage} />
      <Route path="/clusters/new" component={EditorPage} />
      <Route path="/clusters/:id" component={EditorPage} />
      <Route path="/runs" component={RunsPage} />
      <Route path="/runs/new" component={NewRunPage} />
      <Route path="/runs/:id" component={RunPage} />
      <Route path="/compare" component={ComparePage} />
      <Route path="/experiments" component={ExperimentsPage} />
      <Route path="/experiments/new" component={DesignPage} />
      <Route path="/experiments/compare" component={PointsPage} />
      <Route path="/experiments/reproductions" component={ReproductionsPage} />
      <Route path="/experiments/:id" component={ResultPage} />
      <Route path="/account" component={AccountPage} />
      <Route path="/machines" component={MachinesPage} />
      <Route component={NotFound} />
    </Switch>
  );
}
