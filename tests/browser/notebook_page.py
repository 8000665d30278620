"""A notebook open in JupyterLab in a browser: run it, and read its outputs."""

from urllib.parse import urlsplit

from playwright.sync_api import Locator, Page, expect

LOOPBACK = "127.0.0.1"

# JupyterLab shows "Idle" before there is a kernel, and greys its Run menu until the notebook is active.
READY = """async () => {
    const shell = window.jupyterapp?.shell, session = shell?.currentWidget?.sessionContext;
    const kernel = session?.session?.kernel;
    if (!session?.isReady || shell.activeWidget !== shell.currentWidget
        || kernel?.connectionStatus !== 'connected') return false;
    await kernel.info;
    return kernel.status === 'idle';
}"""
# Cells that are off screen are taken out of the page: their outputs can be read in the notebook's model only.
OUTPUTS = """() => [...window.jupyterapp.shell.currentWidget.content.model.cells]
    .map(cell => cell.type === 'code' ? cell.outputs.toJSON() : [])"""
FINISHED = f"""() => {{
    const panel = window.jupyterapp.shell.currentWidget;
    const code = [...panel.content.model.cells].filter(cell => cell.type === 'code');
    const failed = ({OUTPUTS})().flat().some(output => output.output_type === 'error');
    return panel.sessionContext.session.kernel.status === 'idle'
        && (failed || code.every(cell => cell.executionCount !== null));
}}"""
SCROLL = "index => window.jupyterapp.shell.currentWidget.content.scrollToItem(index, 'start')"


class Notebook:
    """A notebook that is open in JupyterLab."""

    def __init__(self, page: Page, address: str) -> None:
        self.page = page
        self.hosts: set[str] = set()
        page.on("request", lambda request: self.hosts.add(urlsplit(request.url).hostname or LOOPBACK))
        page.on("websocket", lambda socket: self.hosts.add(urlsplit(socket.url).hostname or LOOPBACK))
        page.goto(address, timeout=60_000)
        page.locator(".jp-Notebook .jp-Cell").first.click(timeout=60_000)
        page.wait_for_function(READY, timeout=60_000)
        page.wait_for_timeout(1500)  # some of the cells sent in a kernel's first second get lost

    def run_all(self) -> None:
        """Run all cells by the menu and wait for the last, or for an error."""
        self.page.get_by_role("menuitem", name="Run", exact=True).click()
        self.page.get_by_role("menuitem", name="Run All Cells", exact=True).click()
        self.page.wait_for_function(FINISHED, timeout=240_000)

    def errors(self) -> list[str]:
        """The errors among the outputs, as "name: message"."""
        outputs = [output for cell in self.page.evaluate(OUTPUTS) for output in cell]
        return [f"{out['ename']}: {out['evalue']}" for out in outputs if out["output_type"] == "error"]

    def output(self, index: int) -> Locator:
        """The cell of this index, scrolled to, once its widgets are there."""
        self.page.evaluate(SCROLL, index)
        cell = self.page.locator(f'.jp-Cell[data-windowed-list-index="{index}"] .jp-Cell-outputArea')
        expect(cell.locator(".jupyter-widgets, canvas").first).to_be_visible(timeout=30_000)
        return cell
